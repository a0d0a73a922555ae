#!/bin/sh
# One prebuilt binary, made and tested inside node:20-bookworm (glibc) or node:20-alpine (musl), for the
# architecture that the container runs on. The oldest glibc is a matter of what we call and not of the
# container (check.mjs looks at each binary), so Debian 12 does. Run from the repository's root.
set -eu
if [ -f /etc/alpine-release ]; then
  apk add --no-cache binutils cmake g++ gtest-dev linux-headers ninja
else
  apt-get update -q
  apt-get install -yq cmake g++ libgtest-dev ninja-build
fi
COREPACK_ENABLE_DOWNLOAD_PROMPT=0 corepack enable pnpm
pnpm install --frozen-lockfile

# The C++ tests on this C library and this processor: arm64 is weakly ordered, x64 and emulation are not.
(cd native && cmake --preset release -DFABRIC_WERROR=OFF && cmake --build --preset release && ctest --preset release)

pnpm --filter @fabric/shm-ring run build
pnpm --filter @fabric/shm-ring run build:prebuilds
PREBUILDS_ONLY=1 pnpm --filter @fabric/shm-ring run check:addon
