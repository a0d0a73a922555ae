#include "reader_handle.hpp"

#include "convert.hpp"
#include "fabric/wake.hpp"

namespace fabric::addon {

namespace {

// Every descriptor is owned before anything can throw; a value that is none stays out.
std::vector<UniqueFd> own_descriptors(const Napi::Value& value) {
  std::vector<UniqueFd> owned;
  if (!value.IsArray()) throw Napi::TypeError::New(value.Env(), "descriptors must be an array");
  const auto array = value.As<Napi::Array>();
  for (std::uint32_t i = 0; i < array.Length(); i++) {
    const Napi::Value entry = array.Get(i);
    if (!entry.IsNumber()) continue;
    // 0, 1 and 2 are the process's own and never arrived with a message.
    const std::int32_t fd = entry.As<Napi::Number>().Int32Value();
    if (fd > 2) owned.emplace_back(fd);
  }
  return owned;
}

}  // namespace

Napi::Function ReaderHandle::define(Napi::Env env) {
  return DefineClass(env, "NativeRingReader",
                     {InstanceMethod<&ReaderHandle::next>("next"),
                      InstanceMethod<&ReaderHandle::wait_sync>("waitSync"),
                      InstanceMethod<&ReaderHandle::ended>("ended"),
                      InstanceMethod<&ReaderHandle::take>("take"),
                      InstanceMethod<&ReaderHandle::release>("release"),
                      InstanceMethod<&ReaderHandle::held>("held"),
                      InstanceMethod<&ReaderHandle::on_readable>("onReadable"),
                      InstanceMethod<&ReaderHandle::ref>("ref"),
                      InstanceMethod<&ReaderHandle::unref>("unref"),
                      InstanceMethod<&ReaderHandle::about>("about"),
                      InstanceMethod<&ReaderHandle::close>("close")});
}

ReaderHandle::ReaderHandle(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<ReaderHandle>(info), env_(info.Env()) {
  std::vector<UniqueFd> descriptors = own_descriptors(info[0]);
  auto found = info[1].As<Napi::BigUint64Array>();
  guarded(info.Env(), [&] {
    memory_.emplace(RingAttachment::attach(std::move(descriptors)));
    ring_.emplace(RingReader::Parts{memory_->data(), memory_->capacity(), memory_->writer(),
                                    memory_->reader(), memory_->space_pipe()});
    poll_ = LoopPoll::open(env_, memory_->data_pipe(), [this] { on_wake(); });
  });
  found_ = Napi::Reference<Napi::BigUint64Array>::New(found, 1);
  found_words_ = found.Data();
  napi_async_init(env_, nullptr, Napi::String::New(info.Env(), "fabric:ring-data"),
                  &async_context_);
  napi_add_env_cleanup_hook(env_, on_environment_end, this);
  // Until close() or the end of the environment: a garbage collection must never unmap bytes that
  // a view still shows.
  Ref();
}

ReaderHandle::~ReaderHandle() { shut(); }

void ReaderHandle::check_open(Napi::Env env) const {
  if (!ring_) throw_ring_error(env, ErrorCode::Closed, "the ring is closed");
}

Napi::Value ReaderHandle::next(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  check_open(env);
  // Whoever gets null goes to sleep in the event loop.
  ring_->linger();
  const NextResult result = ring_->next();
  if (const auto* record = std::get_if<Record>(&result)) return hand_out(env, *record);
  if (std::holds_alternative<NothingYet>(result)) return env.Null();
  throw_ring_error(env, ErrorCode::RecordInvalid,
                   "the record at position " +
                       std::to_string(std::get<RecordInvalid>(result).position) +
                       " has an impossible length");
}

Napi::Value ReaderHandle::hand_out(Napi::Env env, const Record& record) {
  found_words_[0] = record.position;
  found_words_[1] = record.batch_sequence;
  // Not an external view of no bytes: V8 would give it an address of its own.
  if (record.payload_bytes == 0) return Napi::ArrayBuffer::New(env, 0);
  napi_value view = nullptr;
  // The cast takes const away from a read-only mapping: JavaScript has no such type, the page has.
  const napi_status status = napi_create_external_arraybuffer(
      env, const_cast<std::byte*>(record.payload), record.payload_bytes, nullptr, nullptr, &view);
  napi_ref reference = nullptr;
  if (status != napi_ok || napi_create_reference(env, view, 1, &reference) != napi_ok) {
    ring_->release(record.position);
    throw_ring_error(env, ErrorCode::PlatformUnsupported,
                     "this runtime does not allow buffers over external memory");
  }
  views_.emplace(record.position, reference);
  return Napi::Value(env, view);
}

void ReaderHandle::detach(napi_ref reference) {
  napi_value view = nullptr;
  if (napi_get_reference_value(env_, reference, &view) == napi_ok && view) {
    napi_detach_arraybuffer(env_, view);
  }
  napi_delete_reference(env_, reference);
}

// Blocks the thread: short waits only, for an environment that is to end cannot be heard meanwhile.
Napi::Value ReaderHandle::wait_sync(const Napi::CallbackInfo& info) {
  check_open(info.Env());
  const auto timeout_ns = static_cast<std::int64_t>(whole_number(info[0], "timeoutMs") * 1'000'000);
  const auto spins = static_cast<std::uint32_t>(whole_number(info[1], "spins"));
  return Napi::Boolean::New(info.Env(), ring_->wait(spins, timeout_ns));
}

Napi::Value ReaderHandle::ended(const Napi::CallbackInfo& info) {
  check_open(info.Env());
  return Napi::Boolean::New(info.Env(), is_hung_up(memory_->data_pipe()));
}

Napi::Value ReaderHandle::take(const Napi::CallbackInfo& info) {
  if (ring_) ring_->take(position(info[0]));
  return info.Env().Undefined();
}

Napi::Value ReaderHandle::release(const Napi::CallbackInfo& info) {
  if (!ring_) return Napi::Boolean::New(info.Env(), false);
  const std::uint64_t at = position(info[0]);
  // The view first: once the space is given back, the writer may fill it.
  if (const auto view = views_.find(at); view != views_.end()) {
    detach(view->second);
    views_.erase(view);
  }
  return Napi::Boolean::New(info.Env(), ring_->release(at));
}

Napi::Value ReaderHandle::held(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), ring_ ? static_cast<double>(ring_->held()) : 0);
}

Napi::Value ReaderHandle::on_readable(const Napi::CallbackInfo& info) {
  check_open(info.Env());
  on_readable_ = Napi::Persistent(function(info[0], "callback"));
  poll_->ref();
  poll_->start();
  return info.Env().Undefined();
}

void ReaderHandle::on_wake() {
  // The writer's end is gone: this is readable for ever and says nothing more. What was committed
  // is there, so the last call drains it.
  if (drain_pipe(memory_->data_pipe()) == Drain::EndOfFile) {
    poll_->stop();
    poll_->unref();
  }
  if (on_readable_.IsEmpty()) return;
  Napi::HandleScope scope{Napi::Env(env_)};
  call_from_loop(env_, async_context_, on_readable_.Value(), 0, nullptr);
}

Napi::Value ReaderHandle::ref(const Napi::CallbackInfo& info) {
  if (poll_) poll_->ref();
  return info.Env().Undefined();
}

Napi::Value ReaderHandle::unref(const Napi::CallbackInfo& info) {
  if (poll_) poll_->unref();
  return info.Env().Undefined();
}

Napi::Value ReaderHandle::about(const Napi::CallbackInfo& info) {
  check_open(info.Env());
  const WriterControl& writer = *memory_->writer();
  auto object = Napi::Object::New(info.Env());
  object.Set("capacityBytes", static_cast<double>(memory_->capacity()));
  object.Set("pages", static_cast<double>(writer.pages));
  object.Set("pageSizeBytes", static_cast<double>(writer.page_bytes));
  object.Set("ringId", Napi::BigInt::New(info.Env(), writer.ring_id));
  return object;
}

Napi::Value ReaderHandle::close(const Napi::CallbackInfo& info) {
  if (!ring_) return info.Env().Undefined();
  for (const auto& [position, view] : views_) detach(view);
  views_.clear();
  on_readable_.Reset();
  napi_remove_env_cleanup_hook(env_, on_environment_end, this);
  if (async_context_) napi_async_destroy(env_, async_context_);
  async_context_ = nullptr;
  shut();
  Unref();
  return info.Env().Undefined();
}

// The part without JavaScript: also at the end of the environment.
void ReaderHandle::shut() {
  if (poll_) poll_->close();
  poll_ = nullptr;
  ring_.reset();
  memory_.reset();
}

void ReaderHandle::on_environment_end(void* self) { static_cast<ReaderHandle*>(self)->shut(); }

}  // namespace fabric::addon
