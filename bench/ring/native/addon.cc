// For the contestants in Node: copy(target, targetOffset, source, sourceOffset, bytes) and
// sum(typedArray, byteLength), so that all of them copy and read by the same machine code.
#include <node_api.h>

#include "kernels.hpp"

namespace {

std::byte* bytes_of(napi_env env, napi_value value) {
  void* data = nullptr;
  bool is_typed = false;
  napi_is_typedarray(env, value, &is_typed);
  if (is_typed) {
    napi_get_typedarray_info(env, value, nullptr, nullptr, &data, nullptr, nullptr);
  } else {
    napi_get_arraybuffer_info(env, value, &data, nullptr);
  }
  return static_cast<std::byte*>(data);
}

std::size_t number_of(napi_env env, napi_value value) {
  double number = 0;
  napi_get_value_double(env, value, &number);
  return static_cast<std::size_t>(number);
}

// Unchecked bounds: only bench code calls these.
napi_value copy(napi_env env, napi_callback_info info) {
  napi_value words[5];
  std::size_t count = 5;
  napi_get_cb_info(env, info, &count, words, nullptr, nullptr);
  bench::copy_plain(bytes_of(env, words[0]) + number_of(env, words[1]),
                    bytes_of(env, words[2]) + number_of(env, words[3]), number_of(env, words[4]));
  return nullptr;
}

// The low 32 bits of the sum of all 64-bit words.
napi_value sum(napi_env env, napi_callback_info info) {
  napi_value words[2];
  std::size_t count = 2;
  napi_get_cb_info(env, info, &count, words, nullptr, nullptr);
  const std::uint64_t total =
      bench::sum_words<0>(bytes_of(env, words[0]), number_of(env, words[1]));
  napi_value result = nullptr;
  napi_create_uint32(env, static_cast<std::uint32_t>(total), &result);
  return result;
}

napi_value init(napi_env env, napi_value exports) {
  napi_value function = nullptr;
  napi_create_function(env, "copy", NAPI_AUTO_LENGTH, copy, nullptr, &function);
  napi_set_named_property(env, exports, "copy", function);
  napi_create_function(env, "sum", NAPI_AUTO_LENGTH, sum, nullptr, &function);
  napi_set_named_property(env, exports, "sum", function);
  return exports;
}

}  // namespace

NAPI_MODULE(bench_addon, init)
