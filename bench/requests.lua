-- The requests that wrk sends. bench/load.py passes the kind of request, a file of tokens or bodies, one per
-- line, and a pause. Run wrk with one thread, because two would send the same refresh tokens.

local function read_lines(path)
  local lines = {}
  for line in io.lines(path) do
    lines[#lines + 1] = line
  end
  return lines
end

local kinds = {}

-- Repeat the same requests in order.
local function in_turn(requests)
  local position = 0
  return function()
    position = position % #requests + 1
    return requests[position]
  end
end

local function post(path, body)
  return wrk.format("POST", path, {["Content-Type"] = "application/json"}, body)
end

function kinds.get(path)
  return in_turn({wrk.format("GET", path)})
end

function kinds.get_as(path, lines)
  local requests = {}
  for i, token in ipairs(lines) do
    requests[i] = wrk.format("GET", path, {["Authorization"] = "Bearer " .. token})
  end
  return in_turn(requests)
end

function kinds.get_with_cookie(path, lines)
  return in_turn({wrk.format("GET", path, {["Cookie"] = lines[1]})})
end

function kinds.post(path, lines)
  local requests = {}
  for i, body in ipairs(lines) do
    requests[i] = post(path, body)
  end
  return in_turn(requests)
end

-- Each line has an id for the path, an access token and a body.
function kinds.post_as(path, lines)
  local requests = {}
  for i, line in ipairs(lines) do
    local id, token, body = line:match("^(%S+) (%S+) (.+)$")
    local headers = {["Content-Type"] = "application/json", ["Authorization"] = "Bearer " .. token}
    requests[i] = wrk.format("POST", path:format(id), headers, body)
  end
  return in_turn(requests)
end

-- Each response has the next refresh token of its session, so every request rotates.
function kinds.refresh(path, lines)
  local first, last = 1, #lines
  response = function(status, headers, body)
    local token = body:match('"refresh_token":%s*"([%w_-]+)"')
    if token then
      last = last + 1
      lines[last] = token
    end
  end
  return function()
    local token = lines[first]
    if not token then
      error("fewer sessions than connections")
    end
    lines[first] = nil
    first = first + 1
    return post(path, '{"refresh_token": "' .. token .. '"}')
  end
end

function init(args)
  local kind, path, file, pause = args[1], args[2], args[3], tonumber(args[4])
  request = kinds[kind](path, file == "-" and {} or read_lines(file))
  if pause > 0 then
    -- Milliseconds between two requests of a connection.
    delay = function() return pause end
  end
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests": %d, "seconds": %f, "p50": %f, "p95": %f, "p99": %f, "failures": %d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(95) / 1e3, latency:percentile(99) / 1e3,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout
  ))
end
