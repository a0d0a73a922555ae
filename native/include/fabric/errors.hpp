// Every expected failure of this library has a code from this one table. The TypeScript package
// exports the same table, and a test compares the two.
#pragma once

#include <exception>
#include <string>
#include <utility>

namespace fabric {

#define FABRIC_RING_ERROR_CODES(X) \
  X(CapacityInvalid, "RING_CAPACITY_INVALID")             \
  X(OptionInvalid, "RING_OPTION_INVALID")                 \
  X(HugePagesUnavailable, "RING_HUGE_PAGES_UNAVAILABLE")  \
  X(MemoryUnavailable, "RING_MEMORY_UNAVAILABLE")         \
  X(SealIneffective, "RING_SEAL_INEFFECTIVE")             \
  X(RecordTooLarge, "RING_RECORD_TOO_LARGE")              \
  X(RecordInvalid, "RING_RECORD_INVALID")                 \
  X(ClaimSettled, "RING_CLAIM_SETTLED")                   \
  X(Poisoned, "RING_POISONED")                            \
  X(Closed, "RING_CLOSED")                                \
  X(NotOwner, "RING_NOT_OWNER")                           \
  X(AbiMismatch, "RING_ABI_MISMATCH")                     \
  X(DescriptorInvalid, "RING_DESCRIPTOR_INVALID")         \
  X(SendFailed, "RING_SEND_FAILED")                       \
  X(ConnectFailed, "RING_CONNECT_FAILED")                 \
  X(HandshakeTimeout, "RING_HANDSHAKE_TIMEOUT")           \
  X(HandshakeFailed, "RING_HANDSHAKE_FAILED")             \
  X(SystemCallFailed, "RING_SYSTEM_CALL_FAILED")          \
  X(PlatformUnsupported, "RING_PLATFORM_UNSUPPORTED")

enum class ErrorCode {
#define X(name, text) name,
  FABRIC_RING_ERROR_CODES(X)
#undef X
};

inline constexpr const char* kErrorCodeNames[] = {
#define X(name, text) text,
    FABRIC_RING_ERROR_CODES(X)
#undef X
};

inline const char* name_of(ErrorCode code) { return kErrorCodeNames[static_cast<int>(code)]; }

// Thrown while something is set up or passed on, never by claim, commit, next or release.
class RingFailure : public std::exception {
 public:
  RingFailure(ErrorCode code, std::string message, std::string field = {})
      : code(code), field(std::move(field)), message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

  ErrorCode code;
  std::string field;  // the option that is wrong, or empty

 private:
  std::string message_;
};

// "ENOENT (No such file or directory)"
std::string errno_text(int error);

}  // namespace fabric
