#include "convert.hpp"

#include <cmath>

namespace fabric::addon {

namespace {

std::string text(const char* name, const char* rest) { return std::string(name) + rest; }

}  // namespace

Napi::Value ring_error_value(Napi::Env env, ErrorCode code, const std::string& message,
                             const std::string& field) {
  auto* data = env.GetInstanceData<AddonData>();
  const Napi::Value field_value =
      field.empty() ? env.Undefined() : Napi::Value(Napi::String::New(env, field));
  return data->ring_error.New(
      {Napi::String::New(env, name_of(code)), Napi::String::New(env, message), field_value});
}

void throw_ring_error(Napi::Env env, ErrorCode code, const std::string& message,
                      const std::string& field) {
  throw Napi::Error(env, ring_error_value(env, code, message, field));
}

void throw_ring_error(Napi::Env env, const RingFailure& failure) {
  throw_ring_error(env, failure.code, failure.what(), failure.field);
}

std::uint64_t whole_number(const Napi::Value& value, const char* name) {
  double number = 0;
  if (napi_get_value_double(value.Env(), value, &number) != napi_ok) {
    throw Napi::TypeError::New(value.Env(), text(name, " must be a number"));
  }
  constexpr double safe = 9007199254740991.0;
  if (!(number >= 0 && number <= safe) || number != std::floor(number)) {
    throw Napi::RangeError::New(value.Env(), text(name, " must be a whole number from 0"));
  }
  return static_cast<std::uint64_t>(number);
}

std::uint64_t position(const Napi::Value& value) {
  bool lossless = false;
  std::uint64_t number = 0;
  if (napi_get_value_bigint_uint64(value.Env(), value, &number, &lossless) != napi_ok) {
    throw Napi::TypeError::New(value.Env(), "a position must be a bigint");
  }
  if (!lossless) throw Napi::RangeError::New(value.Env(), "a position must fit in 64 bits");
  return number;
}

int descriptor(const Napi::Value& value, const char* name) {
  const std::uint64_t number = whole_number(value, name);
  if (number > 0x7fffffff) {
    throw Napi::RangeError::New(value.Env(), text(name, " must be a file descriptor"));
  }
  return static_cast<int>(number);
}

Napi::Function function(const Napi::Value& value, const char* name) {
  if (!value.IsFunction()) {
    throw Napi::TypeError::New(value.Env(), text(name, " must be a function"));
  }
  return value.As<Napi::Function>();
}

std::span<const std::uint8_t> bytes(const Napi::Value& value, const char* name) {
  if (!value.IsTypedArray() ||
      value.As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array) {
    throw Napi::TypeError::New(value.Env(), text(name, " must be a Uint8Array"));
  }
  const auto array = value.As<Napi::Uint8Array>();
  return {array.Data(), array.ByteLength()};
}

}  // namespace fabric::addon
