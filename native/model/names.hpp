// Names for people who read a counterexample.
#pragma once

#include <string>

#include "ring_model.hpp"

namespace fabric::model {

std::string name_of_thread(const RingModel& model, int thread);
std::string name_of_location(Location location);
// A stamp as "position STATE", all else as a number.
std::string text_of(Location location, Value value);

}  // namespace fabric::model
