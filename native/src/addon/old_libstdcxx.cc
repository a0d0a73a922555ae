// What the headers of newer compilers ask of the machine, and the oldest systems that Node 20 runs on
// (glibc 2.28, GCC 8) have not. Our own, seen only inside the addon, take their place.
#include <cxxabi.h>

#include <new>

#if defined(__GLIBCXX__)
namespace std {
// Called since GCC 11.
[[noreturn]] void __throw_bad_array_new_length();
void __throw_bad_array_new_length() { __cxxabiv1::__cxa_throw_bad_array_new_length(); }
}  // namespace std

// Read by every std::shared_ptr since GCC 11, of glibc 2.32: whether counts need not be atomic. Node
// has threads, so never.
extern "C" {
extern char __libc_single_threaded;
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;
}
#endif
