#include "host_functions.hpp"

#include <cstring>
#include <optional>
#include <vector>

#include "convert.hpp"
#include "fabric/checksum.hpp"
#include "fabric/gather.hpp"
#include "fabric/socket.hpp"

namespace fabric::addon {

namespace {

// The handshake blocks, so it runs on the thread pool.
class ConnectWork : public Napi::AsyncWorker {
 public:
  ConnectWork(Napi::Env env, std::string path, std::span<const std::uint8_t> hello,
              std::int64_t timeout_ms)
      : Napi::AsyncWorker(env, "fabric:connect"),
        deferred_(Napi::Promise::Deferred::New(env)),
        path_(std::move(path)),
        hello_(hello.begin(), hello.end()),
        timeout_ms_(timeout_ms) {}

  Napi::Promise promise() const { return deferred_.Promise(); }

  void Execute() override {
    try {
      result_ = connect_unix(path_, hello_, timeout_ms_);
    } catch (const RingFailure& failure) {
      failure_.emplace(failure);
    }
  }

  void OnOK() override {
    const Napi::Env env = Env();
    if (failure_) {
      deferred_.Reject(
          ring_error_value(env, failure_->code, failure_->what(), failure_->field));
      return;
    }
    auto descriptors = Napi::Array::New(env, result_.descriptors.size());
    for (std::uint32_t i = 0; i < result_.descriptors.size(); i++) {
      descriptors.Set(i, result_.descriptors[i].get());
    }
    auto reply = Napi::Uint8Array::New(env, result_.reply.size());
    std::memcpy(reply.Data(), result_.reply.data(), result_.reply.size());
    auto object = Napi::Object::New(env);
    object.Set("socketFd", result_.socket.get());
    object.Set("reply", reply);
    object.Set("descriptors", descriptors);
    // Ours no longer. Until here an environment that ended meanwhile had them closed.
    (void)result_.socket.release();
    for (UniqueFd& fd : result_.descriptors) (void)fd.release();
    deferred_.Resolve(object);
  }

 private:
  Napi::Promise::Deferred deferred_;
  std::string path_;
  std::vector<std::uint8_t> hello_;
  std::int64_t timeout_ms_;
  Handshake result_;
  std::optional<RingFailure> failure_;
};

std::span<std::uint32_t> words(const Napi::Value& value, const char* name) {
  // One call that also says what is none; gather_rows() is called for each batch.
  napi_typedarray_type type = napi_int8_array;
  std::size_t length = 0;
  void* data = nullptr;
  const napi_status status = napi_get_typedarray_info(value.Env(), value, &type, &length, &data,
                                                      nullptr, nullptr);
  if (status != napi_ok || type != napi_uint32_array) {
    throw Napi::TypeError::New(value.Env(), std::string(name) + " must be a Uint32Array");
  }
  return {static_cast<std::uint32_t*>(data), length};
}

std::span<std::byte> buffer(const Napi::Value& value, const char* name) {
  std::size_t length = 0;
  void* data = nullptr;
  if (napi_get_arraybuffer_info(value.Env(), value, &data, &length) != napi_ok) {
    throw Napi::TypeError::New(value.Env(), std::string(name) + " must be an ArrayBuffer");
  }
  return {static_cast<std::byte*>(data), length};
}

}  // namespace

Napi::Value send_descriptors_js(const Napi::CallbackInfo& info) {
  const int socket = descriptor(info[0], "socketFd");
  const auto message = bytes(info[1], "message");
  if (!info[2].IsArray()) throw Napi::TypeError::New(info.Env(), "descriptors must be an array");
  const auto array = info[2].As<Napi::Array>();
  std::vector<int> descriptors;
  for (std::uint32_t i = 0; i < array.Length(); i++) {
    descriptors.push_back(descriptor(array.Get(i), "descriptors"));
  }
  guarded(info.Env(), [&] { send_descriptors(socket, message, descriptors); });
  return info.Env().Undefined();
}

Napi::Value connect_unix_js(const Napi::CallbackInfo& info) {
  if (!info[0].IsString()) throw Napi::TypeError::New(info.Env(), "path must be a string");
  std::string path = info[0].As<Napi::String>().Utf8Value();
  const auto hello = bytes(info[1], "hello");
  const auto timeout_ms = static_cast<std::int64_t>(whole_number(info[2], "timeoutMs"));
  // Deletes itself when done.
  auto* work = new ConnectWork(info.Env(), std::move(path), hello, timeout_ms);
  const Napi::Promise promise = work->promise();
  work->Queue();
  return promise;
}

Napi::Value peer_credentials_js(const Napi::CallbackInfo& info) {
  const int socket = descriptor(info[0], "socketFd");
  const Credentials peer = guarded(info.Env(), [&] { return peer_credentials(socket); });
  auto object = Napi::Object::New(info.Env());
  object.Set("pid", static_cast<double>(peer.pid));
  object.Set("uid", static_cast<double>(peer.uid));
  object.Set("gid", static_cast<double>(peer.gid));
  return object;
}

Napi::Value gather_rows_js(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  GatherRows job{};
  job.target = buffer(info[0], "target");
  job.target_offset = whole_number(info[1], "targetByteOffset");
  job.row_stride = whole_number(info[2], "rowStrideBytes");
  job.rows = whole_number(info[3], "rows");
  if (!info[4].IsArray()) throw Napi::TypeError::New(env, "sources must be an array");
  const auto array = info[4].As<Napi::Array>();
  // Once for each source and not for each row: this call is dearer than copying a short row.
  std::vector<std::span<const std::byte>> sources;
  sources.reserve(array.Length());
  for (std::uint32_t i = 0; i < array.Length(); i++) {
    sources.push_back(buffer(array.Get(i), "sources"));
  }
  job.sources = sources;
  job.source_index = words(info[5], "sourceIndex");
  job.source_offset = words(info[6], "sourceByteOffset");
  job.source_length = words(info[7], "sourceByteLength");
  if (const std::string wrong = gather_rows(job); !wrong.empty()) {
    throw Napi::RangeError::New(env, wrong);
  }
  return env.Undefined();
}

Napi::Value crc32_rows_js(const Napi::CallbackInfo& info) {
  Crc32Rows job{};
  job.source = std::as_bytes(bytes(info[0], "source"));
  job.row_offset = words(info[1], "rowByteOffset");
  job.row_length = words(info[2], "rowByteLength");
  job.crcs = words(info[3], "crcs");
  job.rows = whole_number(info[4], "rows");
  if (const std::string wrong = crc32_rows(job); !wrong.empty()) {
    throw Napi::RangeError::New(info.Env(), wrong);
  }
  return info.Env().Undefined();
}

Napi::Value harden_process_js(const Napi::CallbackInfo& info) {
  guarded(info.Env(), [] { harden_process(); });
  return info.Env().Undefined();
}

}  // namespace fabric::addon
