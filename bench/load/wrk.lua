-- Sends the requests of PLAN (made by wrk.py) in turns, and says at the end what came back, as JSON.
local formatted = {}
local place = 0

function init(_)
  for i, r in ipairs(PLAN) do
    formatted[i] = wrk.format(r.method, r.path, r.headers, r.body)
  end
  math.randomseed(tonumber(tostring(formatted):match("0x(%x+)"), 16) % 2147483647)
  place = math.random(#formatted)
end

function request()
  place = place % #formatted + 1
  return formatted[place]
end

function done(summary, latency, _)
  local e = summary.errors
  io.write(string.format(
    '\n{"requests": %d, "seconds": %.6f, "p50": %.6f, "p99": %.6f, "status": %d, "socket": %d, "timeout": %d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e6, latency:percentile(99) / 1e6,
    e.status, e.connect + e.read + e.write, e.timeout
  ))
end
