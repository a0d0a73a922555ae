// What the tests of the model share: run a configuration, print its size, expect an answer.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <initializer_list>
#include <string>

#include "explorer.hpp"
#include "ring_model.hpp"

namespace fabric::model {

// Far above what any test here needs: reaching it is a failure, not a pass.
inline constexpr std::uint32_t kStatesMax = 4'000'000;

inline Report explore(const std::string& title, const Config& config) {
  const RingModel model(config);
  const Report report = Explorer<RingModel>(model, kStatesMax).run();
  std::printf("%-58s %-5s %8u states %9zu steps %6.2f s  %s\n", title.c_str(),
              config.mode == Mode::Views ? "views" : "sc", report.states, report.steps,
              report.cpu_seconds,
              !report.complete           ? "NOT COMPLETE"
              : report.violation.empty() ? "passes"
                                         : report.violation.c_str());
  return report;
}

inline void expect_passes(const std::string& title, const Config& config) {
  const Report report = explore(title, config);
  EXPECT_TRUE(report.complete) << title;
  EXPECT_EQ(report.violation, "") << title << "\n" << report.trace;
  EXPECT_GT(report.finished, 0u) << title;
}

inline void expect_passes_in_both_modes(const std::string& title, Config config) {
  for (const Mode mode : {Mode::SequentiallyConsistent, Mode::Views}) {
    config.mode = mode;
    expect_passes(title, config);
  }
}

inline void expect_caught(const std::string& title, const Config& config,
                          std::initializer_list<const char*> violations) {
  const Report report = explore(title, config);
  bool expected = false;
  for (const char* violation : violations) expected |= report.violation == violation;
  EXPECT_TRUE(expected) << title << ": " << report.violation;
  EXPECT_FALSE(report.trace.empty());
  std::printf("%s\n", report.trace.c_str());
}

// A ring of four lines, so that a few records wrap it.
inline Config ring(std::vector<WriterScript> writers, int start = 4) {
  Config config;
  config.writers = std::move(writers);
  config.start = start;
  return config;
}

inline Config with_views(Config config) {
  config.mode = Mode::Views;
  return config;
}

inline Config polling(Config config) {
  config.sleep = Sleep::Never;
  return config;
}

inline Config on_futex(Config config) {
  config.sleep = Sleep::OnFutex;
  return config;
}

}  // namespace fabric::model
