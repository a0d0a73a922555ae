// Named places between two shared-memory accesses. Tests stop, reorder or kill a thread there; in
// the shipped build they are nothing.
#pragma once

#ifdef FABRIC_TEST_POINTS
namespace fabric {
using TestPointHook = void (*)(const char* name);
// Called by every thread that passes a point; null = none. Set it before the threads start.
extern TestPointHook test_point_hook;
}  // namespace fabric
#define FABRIC_TEST_POINT(name)                                        \
  do {                                                                 \
    if (::fabric::test_point_hook) ::fabric::test_point_hook(name);    \
  } while (false)
#else
#define FABRIC_TEST_POINT(name) \
  do {                          \
  } while (false)
#endif
