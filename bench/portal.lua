-- wrk asks for the addresses in the file that PATHS names, one after the other, and tells what it measured.
local paths, at = {}, 0
for line in io.lines(os.getenv("PATHS")) do paths[#paths + 1] = line end

function request()
  at = at % #paths + 1
  return wrk.format("GET", paths[at])
end

function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '\nTOLD {"requests": %d, "seconds": %.6f, "errors": %d, "p50_ms": %.3f, "p95_ms": %.3f, "p99_ms": %.3f, "worst_ms": %.3f}\n',
    summary.requests, summary.duration / 1e6, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50) / 1e3, latency:percentile(95) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3))
end
