// For the contestants in Node: copy(target, targetOffset, source, sourceOffset, bytes) and
// sum(typedArray, byteLength), so that all of them copy and read by the same machine code, and
// allocate(bytes), so that what they copy lies on the same pages as the native contestants' source.
#include <node_api.h>
#include <sys/mman.h>

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
      bench::sum_words<2048>(bytes_of(env, words[0]), number_of(env, words[1]));
  napi_value result = nullptr;
  napi_create_uint32(env, static_cast<std::uint32_t>(total), &result);
  return result;
}

// An ArrayBuffer that is never freed. V8's own lies on 4 KiB pages, from which one core here copies
// about half as fast.
napi_value allocate(napi_env env, napi_callback_info info) {
  napi_value words[1];
  std::size_t count = 1;
  napi_get_cb_info(env, info, &count, words, nullptr, nullptr);
  const std::size_t bytes = number_of(env, words[0]);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    napi_throw_error(env, nullptr, "mmap failed");
    return nullptr;
  }
  (void)madvise(memory, bytes, MADV_HUGEPAGE);
  napi_value result = nullptr;
  napi_create_external_arraybuffer(env, memory, bytes, nullptr, nullptr, &result);
  return result;
}

napi_value init(napi_env env, napi_value exports) {
  napi_value function = nullptr;
  napi_create_function(env, "copy", NAPI_AUTO_LENGTH, copy, nullptr, &function);
  napi_set_named_property(env, exports, "copy", function);
  napi_create_function(env, "sum", NAPI_AUTO_LENGTH, sum, nullptr, &function);
  napi_set_named_property(env, exports, "sum", function);
  napi_create_function(env, "allocate", NAPI_AUTO_LENGTH, allocate, nullptr, &function);
  napi_set_named_property(env, exports, "allocate", function);
  return exports;
}

}  // namespace

NAPI_MODULE(bench_addon, init)
