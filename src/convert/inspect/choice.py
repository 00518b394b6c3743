import json, re, sys
letter, choices = sys.argv[1], int(sys.argv[2])
text = json.load(sys.stdin.buffer)["output"]
# As in the source: signs around letters are removed, and the last line with an answer counts, or else the last answer.
text = re.sub(r"\$\s*([A-Za-z\d][A-Za-z\d ,]*?)\s*\$", r"\1", text)
text = re.sub(r"\*\*\s*([A-Za-z\d][A-Za-z\d ,]*?)\s*\*\*", r"\1", text)
text = re.sub(r"(?i)(^|[:,])(\s*)\(([A-Za-z\d])\)(?=\s*(?:,|\.|\n|\Z))", r"\1\2\3", text)
found = re.findall(r"(?im)^ANSWER\s*:\s*([A-Za-z\d ,]+)\s*(?:$|\n|\.)", text)
found = found or re.findall(r"(?i)ANSWER\s*:\s*([A-Za-z\d ,]+)(?:[^\w]|\n|$|\.)", text)
tokens = [token for token in found[-1].strip().upper().split(",") if token] if found else []
is_answer = len(tokens) == 1 and tokens[0] in [chr(65 + at) for at in range(choices)]
reason = f"the answer is {tokens[0]}, the target {letter}" if is_answer else f"no answer of one letter was found, the target is {letter}"
print(json.dumps({"passed": is_answer and tokens[0] == letter, "reason": reason}))
