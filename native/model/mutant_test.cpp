// Protocols that differ from ours in one thing, and how each fails. A mutant that passed would mean
// that the model cannot see what the protocol is for.
#include "check.hpp"

using namespace fabric::model;

namespace {

TEST(ModelMutant, PadLeftOutOfTheSumOverlaps) {
  Config config = polling(ring({{put(1) + put(3)}}, 5));
  config.protocol.pad_in_sum = false;
  expect_caught("pad left out of the sum", config, {"overlap"});
  config.protocol.guard_lines = 0;
  config.writers = {{put(2)}, {put(2)}};
  expect_caught("pad left out of the sum, two writers", config, {"overlap"});
}

TEST(ModelMutant, StampWithoutPositionAcceptsTheLapBefore) {
  Config config = ring({{put(1)}});
  config.protocol.stamp_has_position = false;
  expect_caught("stamp without position", config, {"record not settled"});
}

TEST(ModelMutant, WithoutAPadOnlyClaimTheRingIsStuck) {
  Config config = ring({{put(3)}}, 6);
  config.protocol.pad_only_claim = false;
  expect_caught("no pad-only claim", config, {"cannot finish"});
}

TEST(ModelMutant, WaitingFlagWithoutFullOrderingLosesAWakeUp) {
  Config config = ring({{put(1)}});
  config.protocol.orders.settle = Order::AcqRel;
  config.protocol.orders.waiting_load = Order::Acquire;
  config.protocol.orders.waiting_exchange = Order::AcqRel;
  config.protocol.orders.waiting_set = Order::Release;
  config.protocol.orders.look_again_stamp = Order::Acquire;
  expect_passes("waiting flag by acquire and release", config);
  expect_caught("waiting flag by acquire and release", with_views(config), {"cannot finish"});
}

TEST(ModelMutant, NoWeakerAccessOfTheFourIsEnoughForTheReadersSleep) {
  const struct {
    const char* title;
    Order Orders::*access;
    Order weaker;
  } cases[] = {
      {"settle acq_rel", &Orders::settle, Order::AcqRel},
      {"waiting load acquire", &Orders::waiting_load, Order::Acquire},
      {"waiting store release", &Orders::waiting_set, Order::Release},
      {"second look acquire", &Orders::look_again_stamp, Order::Acquire},
  };
  for (const auto& one : cases) {
    Config config = with_views(ring({{put(1)}}));
    config.protocol.orders.*one.access = one.weaker;
    expect_caught(one.title, config, {"cannot finish"});
  }
}

TEST(ModelMutant, AGapPublishedByReleaseOnlyLosesAWakeUp) {
  Config config = with_views(ring({{put(1) + put(3)}}, 6));
  config.protocol.orders.gap_stamp = Order::Release;
  expect_caught("gap stamp release", config, {"cannot finish"});
}

TEST(ModelMutant, SpaceWaitingWithoutFullOrderingLosesAWakeUp) {
  const struct {
    const char* title;
    Order Orders::*access;
    Order weaker;
  } cases[] = {
      {"space waiting store release", &Orders::space_waiting_store, Order::Release},
      {"space recheck acquire", &Orders::space_recheck, Order::Acquire},
      {"read position store release", &Orders::read_position_store, Order::Release},
      {"space waiting load acquire", &Orders::space_waiting_load, Order::Acquire},
  };
  for (const auto& one : cases) {
    Config config = ring({{put(2) + put(2), WhenFull::Wait}});
    config.protocol.orders.*one.access = one.weaker;
    expect_passes(one.title, config);
    expect_caught(one.title, with_views(config), {"cannot finish"});
  }
}

TEST(ModelMutant, SleepingWithoutASecondLookLosesAWakeUp) {
  Config config = ring({{put(1)}});
  config.protocol.look_again_after_waiting = false;
  expect_caught("no second look", config, {"cannot finish"});
}

TEST(ModelMutant, AFutexWordLoadedAfterTheLastLookLosesAWakeUp) {
  Config config = on_futex(ring({{put(1)}}));
  config.protocol.futex_word_before_look = false;
  expect_caught("futex word loaded last", config, {"cannot finish"});
}

TEST(ModelMutant, AFutexWordThatDoesNotChangeLosesAWakeUp) {
  Config config = on_futex(ring({{put(1)}}));
  config.protocol.futex_word_changes = false;
  expect_caught("futex word never changed", config, {"cannot finish"});
}

TEST(ModelMutant, AFutexSleepNeedsTheSameFourFullOrders) {
  for (Order Orders::*access : {&Orders::waiting_set, &Orders::look_again_stamp, &Orders::settle,
                                &Orders::waiting_load}) {
    Config config = with_views(on_futex(ring({{put(1)}})));
    const bool store = access == &Orders::waiting_set;
    config.protocol.orders.*access = access == &Orders::settle ? Order::AcqRel
                                     : store                   ? Order::Release
                                                               : Order::Acquire;
    expect_caught("futex, one access weaker", config, {"cannot finish"});
  }
}

// The reader may see a new wait after the release that the waiting writer has counted already. It
// answers that wait, and never again.
TEST(ModelMutant, AnIdleWakeUpThatIsNotArmedAgainLosesTheNextOne) {
  Config config = ring({{put(1) + put(1) + put(1) + put(3), WhenFull::Wait}});
  config.protocol.rearm_after_idle_wakeup = false;
  expect_caught("idle wake-up, not armed again", config, {"cannot finish"});
}

TEST(ModelMutant, ACommitByARelaxedExchangeShowsUnwrittenBytes) {
  Config config = polling(ring({{put(1)}}));
  config.protocol.orders.settle = Order::Relaxed;
  expect_passes("relaxed commit", config);
  expect_caught("relaxed commit", with_views(config), {"data race"});
}

TEST(ModelMutant, ARelaxedExchangeOfTheHeadOverwritesBytesInUse) {
  // The second writer takes the head that the first one raised, and no exchange of the tail stands
  // between them.
  Config config = polling(ring({{put(3) + put(2)}, {put(2)}}, 5));
  config.protocol.orders.head_raise = Order::Relaxed;
  expect_passes("relaxed head", config);
  expect_caught("relaxed head", with_views(config), {"data race"});
}

// The defect of DPDK a4ad0eba: tail before head, an unsigned difference, a relaxed exchange. Free
// space underflows when the head is older than the tail.
TEST(ModelMutant, ARelaxedExchangeOfTheTailUnderflowsAnUnsignedDifference) {
  Config config = polling(ring({{put(2)}, {put(2)}, {put(2)}}));
  config.protocol.head_before_tail = false;
  config.protocol.signed_difference = false;
  expect_passes("tail first, unsigned", config);
  config.protocol.orders.tail_exchange = Order::Relaxed;
  expect_passes("tail first, unsigned, relaxed exchange", config);
  expect_caught("tail first, unsigned, relaxed exchange", with_views(config),
                {"overlap", "guard broken"});
}

TEST(ModelMutant, AReadPositionWithoutReleaseOrAcquireLetsBytesInUseBeOverwritten) {
  Config config = with_views(polling(ring({{put(3) + put(2)}}, 5)));
  config.protocol.orders.read_position_store = Order::Relaxed;
  expect_caught("read position stored relaxed", config, {"data race"});
  config.protocol.orders = Orders{};
  config.protocol.orders.read_position_load = Order::Relaxed;
  expect_caught("read position loaded relaxed", config, {"data race"});
}

// README.md lists the orders whose weakening the model does not see.
TEST(ModelMutant, NoOtherOrderThatTheModelNeedsMayBeWeaker) {
  const Config reuse = polling(ring({{put(3) + put(2)}, {put(2)}}, 5));
  const Config asks = polling(ring({{put(1) + std::vector<Op>{{OpKind::Taken}}}, {put(1)}}, 5));
  Config liar = ring({{put(2) + put(2), WhenFull::GiveUp}, {put(2), WhenFull::GiveUp}});
  liar.reader = ReaderKind::Liar;
  const struct {
    const char* title;
    Config config;
    Order Orders::*access;
    Order weaker;
    const char* violation;
  } cases[] = {
      {"head load relaxed", reuse, &Orders::head_load, Order::Relaxed, "data race"},
      {"head raised without release", reuse, &Orders::head_raise, Order::Acquire, "data race"},
      {"writer's look relaxed", reuse, &Orders::look_at_stamp, Order::Relaxed,
       "committed is wrong"},
      {"reader's look relaxed", ring({{put(1)}}), &Orders::look_stamp, Order::Relaxed, "data race"},
      {"gap stamp relaxed", ring({{put(1) + put(3)}}, 6), &Orders::gap_stamp, Order::Relaxed,
       "data race"},
      {"taken position load relaxed", asks, &Orders::taken_position_load, Order::Relaxed,
       "honest reader poisoned"},
      {"taken position store relaxed", asks, &Orders::taken_position_store, Order::Relaxed,
       "honest reader poisoned"},
      {"committed load relaxed", liar, &Orders::committed_load, Order::Relaxed, "data race"},
      {"committed without release", liar, &Orders::committed_exchange, Order::Acquire,
       "data race"},
  };
  for (const auto& one : cases) {
    Config config = with_views(one.config);
    config.protocol.orders.*one.access = one.weaker;
    expect_caught(one.title, config, {one.violation});
  }
}

TEST(ModelMutant, ALoweredHeadAnswersFullWithRoomLeft) {
  Config config = polling(ring({{put(1) + put(2)}, {put(1) + put(2)}}));
  config.protocol.head_only_grows = false;
  expect_caught("cached head lowered", config, {"false FULL"});
}

TEST(ModelMutant, AReadPositionCheckedAgainstTheTailFreesARecordInTheWriting) {
  Config config = ring({{put(2) + put(2), WhenFull::GiveUp}, {put(2), WhenFull::GiveUp}});
  config.reader = ReaderKind::Liar;
  config.protocol.position_checked_against_committed = false;
  expect_caught("checked against the claimed tail", config, {"overlap"});
}

// The writer that settled the record may not have moved `committed` yet, and two that settle at
// once may each miss the other.
TEST(ModelMutant, CommittedAsItStandsMakesALiarOfAnHonestReader) {
  Config config = polling(ring({{put(2)}, {put(2)}}));
  config.protocol.advance_before_poison = false;
  expect_caught("committed not moved before the check", config, {"honest reader poisoned"});
}

TEST(ModelMutant, CommittedMovedByAStoreGoesBack) {
  Config config = polling(ring({{put(1)}, {put(1)}}));
  config.protocol.committed_by_exchange = false;
  expect_caught("committed by a store", config, {"committed is wrong"});
}

TEST(ModelMutant, AWatchdogMayNotPadOverALivingWriter) {
  Config config = polling(ring({{put(2)}, {put(2)}}));
  config.watchdog = true;
  expect_caught("watchdog, commit by exchange", config, {"settled twice", "overlap"});
  config.protocol.settle_by_exchange = false;
  expect_caught("watchdog, commit by a store", config, {"settled twice", "overlap"});
}

// One word and one pipe serve all threads of the broker: only one of them may wait at a time.
TEST(ModelLimit, TwoThreadsThatWaitForSpaceAtOnceMissAWakeUp) {
  const Config config =
      ring({{put(2) + put(2), WhenFull::Wait}, {put(2), WhenFull::Wait}});
  expect_caught("two waiters", config, {"cannot finish"});
}

// What the tail's exchange orders is ordered by the head and the stamps as well, so the model finds
// no run in which its order matters alone. The code keeps acq_rel: the proof should not hang on it.
TEST(ModelLimit, ARelaxedExchangeOfOurTailAloneIsNotSeen) {
  Config config = polling(with_views(ring({{put(2)}, {put(2)}}, 5)));
  config.protocol.orders.tail_exchange = Order::Relaxed;
  config.protocol.orders.tail_exchange_lost = Order::Relaxed;
  expect_passes("relaxed tail, head first, signed", config);
}

}  // namespace
