// The few libuv functions the addon calls, declared here: Node exports them from its own binary and
// keeps their ABI over all of libuv 1.x, while the headers of the build (node-api-headers) lack
// uv.h. Handles are opaque; their sizes are asked at run time.
#pragma once

#include <cstddef>

extern "C" {
struct uv_loop_s;
struct uv_handle_s;
using fabric_uv_poll_callback = void (*)(uv_handle_s*, int status, int events);
using fabric_uv_close_callback = void (*)(uv_handle_s*);

std::size_t uv_handle_size(int type);
int uv_poll_init(uv_loop_s*, uv_handle_s*, int fd);
int uv_poll_start(uv_handle_s*, int events, fabric_uv_poll_callback);
int uv_poll_stop(uv_handle_s*);
void uv_close(uv_handle_s*, fabric_uv_close_callback);
void uv_ref(uv_handle_s*);
void uv_unref(uv_handle_s*);
void* uv_handle_get_data(const uv_handle_s*);
void uv_handle_set_data(uv_handle_s*, void*);
const char* uv_strerror(int);
}

namespace fabric::addon {
// From uv_handle_type and uv_poll_event, fixed in libuv 1.x.
inline constexpr int kUvPoll = 8;
inline constexpr int kUvReadable = 1;
}  // namespace fabric::addon
