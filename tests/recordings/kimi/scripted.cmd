# 1.47.0, 2026-11-22, exit status 0, cwd /workspace, in a trial with a scripted model of `evals`: `gateway` of harnesses/kimi-stream.yaml
kimi --print --output-format stream-json -p "Do it." --model scripted
