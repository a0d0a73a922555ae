// The functions that belong to no ring: sockets, rows, hardening.
#pragma once

#include <napi.h>

namespace fabric::addon {

Napi::Value send_descriptors_js(const Napi::CallbackInfo& info);
Napi::Value connect_unix_js(const Napi::CallbackInfo& info);
Napi::Value peer_credentials_js(const Napi::CallbackInfo& info);
Napi::Value gather_rows_js(const Napi::CallbackInfo& info);
Napi::Value crc32_rows_js(const Napi::CallbackInfo& info);
Napi::Value harden_process_js(const Napi::CallbackInfo& info);

}  // namespace fabric::addon
