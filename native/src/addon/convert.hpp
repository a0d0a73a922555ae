// From JavaScript values to C++ and back. What a caller got wrong becomes a TypeError or RangeError,
// what went wrong outside becomes a RingError with its code.
#pragma once

#include <napi.h>

#include <cstdint>
#include <span>
#include <string>

#include "fabric/errors.hpp"

namespace fabric::addon {

// One for each environment.
struct AddonData {
  Napi::FunctionReference ring_error;  // the RingError class of the TypeScript package
};

[[noreturn]] void throw_ring_error(Napi::Env env, ErrorCode code, const std::string& message,
                                   const std::string& field = {});
[[noreturn]] void throw_ring_error(Napi::Env env, const RingFailure& failure);
Napi::Value ring_error_value(Napi::Env env, ErrorCode code, const std::string& message,
                             const std::string& field);

// A whole number from 0 to 2^53 - 1.
std::uint64_t whole_number(const Napi::Value& value, const char* name);
std::uint64_t position(const Napi::Value& value);
int descriptor(const Napi::Value& value, const char* name);
Napi::Function function(const Napi::Value& value, const char* name);
std::span<const std::uint8_t> bytes(const Napi::Value& value, const char* name);

// Runs `body`; a RingFailure becomes a RingError in JavaScript.
template <typename Body>
auto guarded(Napi::Env env, Body&& body) {
  try {
    return body();
  } catch (const RingFailure& failure) {
    throw_ring_error(env, failure);
  }
}

}  // namespace fabric::addon
