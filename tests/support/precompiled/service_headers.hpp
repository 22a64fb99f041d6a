#pragma once

// Headers that most tests of the service include, compiled once for all its test programs
// (tests/CMakeLists.txt). Messages and calls take most of the time of such a compilation.

#include "quasi/v1/access_service.grpc.pb.h"
#include "quasi/v1/admin_service.grpc.pb.h"
#include "quasi/v1/blob_service.grpc.pb.h"
#include "quasi/v1/job_service.grpc.pb.h"
#include "quasi/v1/worker_service.grpc.pb.h"
#include "tests/support/precompiled/test_headers.hpp"
