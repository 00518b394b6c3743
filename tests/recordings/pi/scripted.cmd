# 0.73.1, 2026-11-22, exit status 0, cwd /workspace, in a trial with a scripted model of `evals`: `gateway` of harnesses/pi.yaml
pi --mode json --provider gateway --model scripted -p "Do it."
