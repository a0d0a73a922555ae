// The headers of GCC 11 and later call this function of libstdc++, which the libstdc++ of the oldest
// systems that Node 20 runs on (GCC 8) has not. Our own, seen only inside the addon, takes its place.
#include <cxxabi.h>

#include <new>

#if defined(__GLIBCXX__)
namespace std {
[[noreturn]] void __throw_bad_array_new_length();
void __throw_bad_array_new_length() { __cxxabiv1::__cxa_throw_bad_array_new_length(); }
}  // namespace std
#endif
