#include "fabric/errors.hpp"

#include <cerrno>
#include <system_error>

namespace fabric {

std::string errno_text(int error) {
  // GNU's strerrorname_np needs glibc 2.32; these are the ones our calls return.
  struct Name {
    int value;
    const char* name;
  };
  static constexpr Name names[] = {
      {EACCES, "EACCES"},     {EAGAIN, "EAGAIN"},         {EBADF, "EBADF"},
      {EBUSY, "EBUSY"},       {ECONNREFUSED, "ECONNREFUSED"}, {ECONNRESET, "ECONNRESET"},
      {EFAULT, "EFAULT"},     {EINVAL, "EINVAL"},         {EMFILE, "EMFILE"},
      {EMSGSIZE, "EMSGSIZE"}, {ENAMETOOLONG, "ENAMETOOLONG"}, {ENFILE, "ENFILE"},
      {ENODEV, "ENODEV"},     {ENOENT, "ENOENT"},         {ENOMEM, "ENOMEM"},
      {ENOSPC, "ENOSPC"},     {ENOSYS, "ENOSYS"},         {ENOTCONN, "ENOTCONN"},
      {ENOTDIR, "ENOTDIR"},   {ENOTSOCK, "ENOTSOCK"},     {EPERM, "EPERM"},
      {EPIPE, "EPIPE"},       {EPROTOTYPE, "EPROTOTYPE"}, {ETIMEDOUT, "ETIMEDOUT"},
      {ETOOMANYREFS, "ETOOMANYREFS"}, {EHWPOISON, "EHWPOISON"}, {ELOOP, "ELOOP"},
  };
  std::string name = "errno " + std::to_string(error);
  for (const Name& entry : names) {
    if (entry.value == error) name = entry.name;
  }
  return name + " (" + std::generic_category().message(error) + ")";
}

}  // namespace fabric
