// The module's entry, once for each environment (main thread and workers).
#include <napi.h>

#include "convert.hpp"
#include "fabric/layout.hpp"
#include "host_functions.hpp"
#include "peer_watch.hpp"
#include "reader_handle.hpp"
#include "writer_handle.hpp"

namespace fabric::addon {

namespace {

Napi::Value set_error_class(const Napi::CallbackInfo& info) {
  auto* data = info.Env().GetInstanceData<AddonData>();
  data->ring_error = Napi::Persistent(function(info[0], "errorClass"));
  return info.Env().Undefined();
}

Napi::Array error_codes(Napi::Env env) {
  auto array = Napi::Array::New(env);
  for (const char* name : kErrorCodeNames) array.Set(array.Length(), name);
  return array;
}

}  // namespace

static Napi::Object init(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(new AddonData());
  exports.Set("abiVersion", kAbiVersion);
  exports.Set("errorCodes", error_codes(env));
  exports.Set("setErrorClass", Napi::Function::New<set_error_class>(env, "setErrorClass"));
  exports.Set("NativeRingWriter", WriterHandle::define(env));
  exports.Set("NativeRingReader", ReaderHandle::define(env));
  exports.Set("NativePeerWatch", PeerWatch::define(env));
  exports.Set("sendDescriptors", Napi::Function::New<send_descriptors_js>(env, "sendDescriptors"));
  exports.Set("connectUnix", Napi::Function::New<connect_unix_js>(env, "connectUnix"));
  exports.Set("peerCredentials", Napi::Function::New<peer_credentials_js>(env, "peerCredentials"));
  exports.Set("gatherRows", Napi::Function::New<gather_rows_js>(env, "gatherRows"));
  exports.Set("crc32Rows", Napi::Function::New<crc32_rows_js>(env, "crc32Rows"));
  exports.Set("hardenProcess", Napi::Function::New<harden_process_js>(env, "hardenProcess"));
  return exports;
}

}  // namespace fabric::addon

// The macro makes a name of its argument, so it takes no qualified one.
static Napi::Object init_shm_ring(Napi::Env env, Napi::Object exports) {
  return fabric::addon::init(env, exports);
}

NODE_API_MODULE(shm_ring, init_shm_ring)
