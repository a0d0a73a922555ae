#include "fabric/test_point.hpp"

namespace fabric {
TestPointHook test_point_hook = nullptr;
}
