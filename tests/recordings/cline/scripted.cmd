# 3.0.65, 2026-11-22, exit status 0, cwd /workspace, in a trial with a scripted model of `evals`: `gateway` of harnesses/cline-stream.yaml
cline --json -P openai-compatible -m scripted "Do it."
