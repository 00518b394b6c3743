//! Command lines and the commands that they run.

use super::{CommandLine, Dialect, text_of_shell, text_of_started_shell};
use crate::judgement::Judgement;
use crate::yaml::lists::OneOrList;

fn read(line: &str) -> CommandLine {
    CommandLine::read(line, Dialect::Unknown)
}

#[test]
fn a_shell_with_a_text_is_known_by_its_words() {
    for (words, text) in [
        (&["bash", "-lc", "make"] as &[&str], Some("make")),
        (&["/bin/ash", "-e", "-o", "pipefail", "-c", "make", "name"], Some("make")),
        (&["sh", "-c", "--", "make"], Some("make")),
        (&["bash", "run.sh", "-c", "make"], None),
        (&["bash", "-c"], None),
        (&["grep", "-c", "make"], None),
        (&[], None),
    ] {
        assert_eq!(text_of_shell(words), text, "{words:?}");
    }
}

#[test]
fn a_shell_may_be_started_by_other_programs() {
    for (words, text) in [
        (&["env", "bash", "-c", "make"] as &[&str], Some("make")),
        (&["env", "A=b", "timeout", "5", "bash", "-lc", "make"], Some("make")),
        (&["busybox", "sh", "-c", "make"], Some("make")),
        (&["fish", "--command=make"], Some("make")),
        (&["nu", "-c", "make"], Some("make")),
        (&["bash", "-c", "make"], Some("make")),
        (&["grep", "sh", "-c", "make"], None),
        (&["env", "make", "sh", "-c", "x"], None),
        (&["bash", "run.sh", "sh", "-c", "x"], None),
        (&["env"], None),
    ] {
        assert_eq!(text_of_started_shell(words), text, "{words:?}");
    }
}

#[test]
fn the_commands_of_a_line_are_in_the_normal_form() {
    let mut wrong = Vec::new();
    for (line, commands) in [
        ("/bin/rm -rf 'my files' \"\"", &["rm -rf my␣files ''"] as &[&str]),
        ("X=1 Y=\"a b\" make", &["make"]),
        ("a && b || c; d & e\nf", &["a", "b", "c", "d", "e", "f"]),
        ("cat <in >out 2>&1 2>/dev/null", &["cat <in >out >/dev/null"]),
        ("a | b |& c", &["a", "b <|a", "c <|b␣<|a"]),
        ("(a; b) | c", &["a", "b", "c <|a␣<|b"]),
        ("{ a; b; } | c", &["a", "b", "c <|a␣<|b"]),
        ("echo \"$(rm a)\" `rm b`", &["rm a", "rm b", "echo $(rm␣a) $(rm␣b)"]),
        ("diff <(a x) >(b)", &["a x", "b", "diff <(a␣x) >(b)"]),
        (
            "git commit -m \"$(cat <<'EOF'\nIt's (rm -rf x\nEOF\n)\" && b",
            &["cat <<<It's␣(rm␣-rf␣x␤", "git commit -m It's␣(rm␣-rf␣x␤", "b"],
        ),
        ("cat <<A <<-B; c\n1\nA\n\t2\n\tB\nd", &["cat <<<1␤ <<<2␤", "c", "d"]),
        ("if a; then b; elif ! c; then d; else e; fi >f", &["a", "b", "c", "d", "e", ": >f"]),
        ("time { a; }; time -p b", &["a", "time -p b", "b"]),
        ("for x in rm $(y); do a $x; done", &["y", "a $x"]),
        ("while read l; do a; done < f", &["read l", "a", ": <f"]),
        ("case \"$1\" in rm|halt) a;; (b) c ;; *) d; esac; e", &["a", "c", "d", "e"]),
        ("f() { a; }; function g { b; }", &["a", "b"]),
        ("[[ a =~ b|c && -f $(d) ]] && e", &["d", "e"]),
        ("[ -f a ] || b", &["[ -f a ]", "b"]),
        ("a # b; c\nd#e", &["a", "d#e"]),
        ("a \\\n  b\\ c 'd'\"e\"f $'\\x67\\n'", &["a b␣c def g␤"]),
        ("r\\m a; 'r'm b; $'\\162m' c; \"rm\" d", &["rm a", "rm b", "rm c", "rm d"]),
        ("X=rm; $X a; ${X} b; \"$X\" c", &["rm a", "rm b", "rm c"]),
        ("X='rm -rf'; $X a", &["rm -rf a"]),
        ("rm$IFS-rf${IFS}a; {rm,-rf,a}", &["rm -rf a", "rm -rf a"]),
        ("$HOME/bin/tool a; $(which python3) -m b", &["tool a", "which python3", "python3 -m b"]),
        ("xs=(a 'rm b' $(c)); d", &["c", "d"]),
        ("ls a!(b|c).txt", &["ls a!(b|c).txt"]),
        // What looks like the end of something, and is none.
        ("(( x <<= 2 ))\na; ((y=1<<2))\nb", &["a", "b"]),
        ("echo $((1 + $(a))) $[1<<2]\nb", &["a", "echo $((…)) $[…]", "b"]),
        ("echo ${x//'}'/}\na", &["echo ${x…}", "a"]),
        ("echo \"${x:-\"}\"}\"\na", &["echo }", "a"]),
        ("s=${s%'}'}\necho 'a; b'", &["echo a;␣b"]),
        ("cat <<$x\na\n$x\nb", &["cat <<<a␤", "b"]),
        (
            "echo \"$(case $x in a) b; c;; (d) e;; esac)\"; f",
            &["b", "c", "e", "echo $(case␣$x␣in␣a)␣b;␣c;;␣(d)␣e;;␣esac)", "f"],
        ),
        ("{fd}>f a", &["a >f"]),
        // Redirections without a command, and those of groups.
        ("> a; { b; } > c; (d) >> e", &[": >a", "b", ": >c", "d", ": >>e"]),
        ("echo a | { b; c; }", &["echo a", "b <|echo␣a", "c <|echo␣a"]),
        ("a | while read l; do b; done", &["a", "read l <|a", "b <|a"]),
        // Variables with several values, lists, and the words of functions.
        ("for v in 3.9 3.10; do python$v -V; done", &["python3.9 -V", "python3.10 -V"]),
        ("c=(rm -rf); \"${c[@]}\" a", &["rm -rf a"]),
        ("f() { \"$@\"; }; f rm a", &["rm a"]),
        ("f() { git \"$@\"; }; f status > b", &["git $@", ": >b", "git status"]),
        ("if x; then f() { a; }; fi; f b", &["x", "a", "f b"]),
        ("set -- rm a; \"$@\"", &["set -- rm a", "rm a"]),
        ("${X:-rm} a; r{m,m} b; {r,}m c", &["rm a", "rm rm b", "rm m c"]),
        ("coproc X { a; }; time ! b", &["a", "b"]),
        ("X=$HOME/bin/a; $X b; D=$(mktemp -d); $D/c", &["a b", "mktemp -d", "c"]),
        ("X=a; X+=' b'; $X; c=(d e); ${c[1]} f", &["a b", "e f"]),
        ("for p in a b; do Q=$p; done; $Q c", &["a c", "b c"]),
        // What the line writes for a shell.
        ("cat > x.sh <<'E'\nrm a\nE\nsh x.sh; ./x.sh", &["cat >x.sh <<<rm␣a␤", "sh x.sh", "rm a", "x.sh", "rm a"]),
        ("printf '%s\\n' 'a' 'rm b' | sh", &["printf %s\\n a rm␣b", "sh <|printf␣%s\\n␣a␣rm␣b", "a", "rm b"]),
        ("{ echo a; echo 'rm b'; } | sh", &["echo a", "echo rm␣b", "sh <|echo␣a␣<|echo␣rm␣b", "a", "rm b"]),
        ("echo 'x' | python3", &["echo x", "python3 <|echo␣x <<<x"]),
        // Programs that run others.
        (
            "retry -n 3 bash -c 'rm a'; echo bash -c 'rm a'",
            &["retry -n 3 bash -c rm␣a", "bash -c rm␣a", "rm a", "echo bash -c rm␣a"],
        ),
        ("ssh h -p 22 -- rm a", &["ssh h -p 22 -- rm a", "rm a"]),
        (
            "Get-ChildItem a | ForEach-Object { Remove-Item $_ }",
            &[
                "Get-ChildItem a",
                "ForEach-Object { Remove-Item $_ } <|Get-ChildItem␣a",
                "Remove-Item $_ <|Get-ChildItem␣a",
            ],
        ),
        (
            "pwsh -NoProfile -ExecutionPolicy Bypass -Command 'Remove-Item a'",
            &["pwsh -NoProfile -ExecutionPolicy Bypass -Command Remove-Item␣a", "Remove-Item a"],
        ),
        ("sudo -u root -E A=b rm a", &["sudo -u root -E A=b rm a", "rm a"]),
        (
            "timeout -k 5 10s env -i X=1 nice -n5 rm a",
            &["timeout -k 5 10s env -i X=1 nice -n5 rm a", "env -i X=1 nice -n5 rm a", "nice -n5 rm a", "rm a"],
        ),
        ("find . -name x -exec rm {} \\; -o -exec a +", &["find . -name x -exec rm {} ; -o -exec a +", "rm {}", "a"]),
        ("bash -lc 'cd x && rm a'", &["bash -lc cd␣x␣&&␣rm␣a", "cd x", "rm a"]),
        ("bash -lc rm -rf a", &["bash -lc rm -rf a", "rm -rf a"]),
        ("sh <<E\nrm a\nE", &["sh <<<rm␣a␤", "rm a"]),
        ("echo 'rm a' | sh -s", &["echo rm␣a", "sh -s <|echo␣rm␣a", "rm a"]),
        ("ssh -p 22 h 'rm a'", &["ssh -p 22 h rm␣a", "rm a"]),
        ("docker compose -f x exec -T web rm a", &["docker compose -f x exec -T web rm a", "rm a"]),
        ("kubectl -n x exec pod -c a -- rm b", &["kubectl -n x exec pod -c a -- rm b", "rm b"]),
        (
            "eval -- 'rm a'; trap -- 'rm b' EXIT; bash +x -c 'rm c'",
            &["eval -- rm␣a", "rm a", "trap -- rm␣b EXIT", "rm b", "bash +x -c rm␣c", "rm c"],
        ),
        ("script -qec 'rm a' /dev/null", &["script -qec rm␣a /dev/null", "rm a"]),
        (". /dev/stdin <<E\nrm a\nE", &[". /dev/stdin <<<rm␣a␤", "rm a"]),
        ("bash <(echo 'rm a')", &["echo rm␣a", "bash <(echo␣'rm␣a')", "rm a"]),
        ("echo -n 'rm a' | tee l | sh", &["echo -n rm␣a", "tee l <|echo␣-n␣rm␣a", "sh <|tee␣l␣<|echo␣-n␣rm␣a", "rm a"]),
        ("ssh h bash -s <<'E'\nrm a\nE", &["ssh h bash -s <<<rm␣a␤", "bash -s", "rm a"]),
        ("docker run --entrypoint rm img -rf a", &["docker run --entrypoint rm img -rf a", "rm -rf a"]),
        ("poetry -C d run rm a; npm exec -c 'rm b'", &["poetry -C d run rm a", "rm a", "npm exec -c rm␣b", "rm b"]),
        ("perl -e '`rm a`'", &["perl -e `rm␣a`", "rm a"]),
        (
            "python3 -c 'subprocess.run(args=[\"rm\", \"a\"])'",
            &["python3 -c subprocess.run(args=[\"rm\",␣\"a\"])", "rm a"],
        ),
        ("python3 -c \"import os; os.system('rm a')\"", &["python3 -c import␣os;␣os.system('rm␣a')", "rm a"]),
        ("node -e 'spawn(\"rm\", [\"-rf\", \"a\"])'", &["node -e spawn(\"rm\",␣[\"-rf\",␣\"a\"])", "rm -rf a"]),
        ("command -v rm", &["command -v rm"]),
        ("echo a b | xargs -n1 rm", &["echo a b", "xargs -n1 rm <|echo␣a␣b", "rm a b <|echo␣a␣b"]),
        ("ls | xargs -I% rm %", &["ls", "xargs -I% rm % <|ls", "rm {} <|ls"]),
        ("echo 'rm a' > >(sh)", &["sh", "rm a", "echo rm␣a >>(sh)"]),
        ("git -c core.pager='less -R' log", &["git -c core.pager=less␣-R log", "less -R"]),
        ("done 2>&1; >&2 if a; fi", &["if a"]),
        ("[[ -f a || -f $(b) ]] && c", &["b", "c"]),
        ("cat <<E\r\nx\r\nE\r\na\r\n", &["cat <<<x␤", "a"]),
        ("git rebase -x 'rm a' main", &["git rebase -x rm␣a main", "rm a"]),
        ("env - X=1 rm a", &["env - X=1 rm a", "rm a"]),
        // A script that the line writes, and runs in another way than by its name.
        ("echo 'rm a' > f; sh < f", &["echo rm␣a >f", "sh <f", "rm a"]),
        ("echo 'rm a' > f; cat ./f | sh", &["echo rm␣a >f", "cat ./f", "sh <|cat␣./f", "rm a"]),
        ("echo 'rm a' > f; sh \"$PWD/f\"", &["echo rm␣a >f", "sh $PWD/f", "rm a"]),
        ("echo 'rm a' > f; eval \"$(cat f)\"", &["echo rm␣a >f", "cat f", "eval rm␣a", "rm a"]),
        ("echo 'rm a' > f; sh -c \"$(< f)\"", &["echo rm␣a >f", ": <f", "sh -c rm␣a", "rm a"]),
        ("echo 'rm a' > f; mv f g; sh g", &["echo rm␣a >f", "mv f g", "sh g", "rm a"]),
        ("echo 'rm a' > f; python3 < f", &["echo rm␣a >f", "python3 <f <<<rm␣a␤"]),
    ] {
        let read = read(line);
        if read.commands != commands || read.has_unknown {
            wrong.push((line, read));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_program_without_a_shown_name_is_unknown() {
    for (line, has_unknown) in [
        ("$X a", true),
        ("\"${CC:-gcc}\" -c a.c", false),
        ("CC=$X; \"${CC:-gcc}\"", true),
        ("${!X} a", true),
        ("$(cat n) a", true),
        ("X=a; . ./e; $X", true),
        ("X=a; printf -v X b; $X", true),
        ("a[1]=3; m[$x]=$((1 + 2)); declare -A m", false),
        ("f() { echo \"$*\"; \"$@\"; }; f a b", false),
        ("\"$@\"", true),
        ("set -- a b; \"$@\"", false),
        ("bash -c '\"$@\"' _ ls -la", false),
        ("c=(a b); \"${c[@]}\"", false),
        ("c=(a $b); \"${c[@]}\"", false),
        ("c=($b a); \"${c[@]}\"", true),
        ("c=(a $b c); \"${c[2]}\"", true),
        ("/usr/bin/python3* -V", false),
        (": \"${CC:=gcc}\"; $CC a.c", false),
        ("X=$(which a || which b); $X", false),
        ("$env:CI = '1'; npm test", false),
        ("if ($LASTEXITCODE -ne 0) { exit 1 }", false),
        ("$x = Get-Content a; $x.Count", false),
        ("[System.IO.File]::ReadAllText('a')", false),
        ("bash -c \"$X\"", true),
        ("eval $X", true),
        ("X=$(mktemp); $X", true),
        ("for x in a b; do $x; done", false),
        ("for x in a $b; do $x; done", true),
        ("X=$Y; $X a; X=$HOME/$Y; $X", true),
        ("f() { local c=$1; shift; $c \"$@\"; }; f ls a", false),
        ("read x; $x", true),
        ("/bin/r? a", true),
        ("sudo $X", true),
        ("X=a; Y=$X; $Y", false),
        ("a $X", false),
        ("$X", true),
        ("X=$Y a", false),
        ("eval \"$(ssh-agent -s)\"", false),
        ("bash run.sh", false),
        ("python3 -c 'run(\"$X\")'", false),
        ("a \"b", false),
        ("a 'b", false),
        ("a $(b", false),
        ("a `b", false),
        ("a ${b", false),
        ("cat <<E\nx", false),
        ("$", false),
        ("", false),
        (") } ;; esac | | & ( {", false),
        // Shells read these lines in different ways.
        ("cat <<E\\\nF\nx\nEF\nb", true),
        ("cat <<\"E\\F\"\nb", true),
        ("cat <<E\nE\r\nb", true),
        ("a \\\r\nb", true),
        ("a \r#; b", true),
        ("echo $'\\'; b; echo ''", true),
        ("echo $'It\\'s'; b", false),
        ("echo $'a\\'; b", true),
        ("[[ x; b", true),
        ("[[ a == b &&\n c == d ]]", false),
        ("ls *(e{'b'})", true),
        ("ls @(name|time).c *(.)", false),
        ("echo ${(e)x}", true),
        ("echo ${x@P} ${x@Q}", true),
        ("echo ${x@Q}", false),
        ("a &>b c", true),
        ("a &>b 2>&1; c", false),
        ("a[$(b)]=1; echo $((a[0]))", false),
        ("x='a[$(b)]'; echo $((x))", true),
        ("x='a[$(b)]'; echo $((1 + 2))", false),
        ("x='a[$(b)]'; echo \"${y[x]}\"", true),
        ("x='a[$(b)]'; echo ${PATH:$x}", true),
        ("x='a[$(b)]'; echo ${!x}", true),
        ("x='a[$(b)]'; y[$x]=1", true),
        ("[[ a -eq 'x[$(b)]' ]]", true),
        // The text of another language, beside a test.
        ("[ -f l ] && awk '{c[$(NF)]++}' l", false),
        ("[ -d a ] && rg -n 'exec[(`]' a", false),
        ("test -f a && sed -n 's/foo[`]/x/p' a", false),
        ("test -f a && LC_ALL=C timeout 5 awk '{c[$(NF)]++}' a", false),
        // A text that no builtin evaluates.
        ("test -f a && echo 'c[$(b)]'", false),
        ("cat > a.ts <<'E'\no[`d-${k}`];\nE\nif [ -f t ]; then export X=1; n=$((n + 1)); fi", false),
        ("m='a r[$(i)]'; n=$((n + 1)); export m; git commit -m \"$m\"", false),
        ("x=y; y='a[$(b)]'; ((x))", true),
        ("read 'a[$(b)]'", true),
        ("read x <<< 'a[$(b)]'; echo $((x))", true),
        ("while read x; do ((x)); done <<< 'a[$(b)]'", true),
        ("declare 'a[$(b)]=1'", true),
        ("[ -v 'a[$(b)]' ]", true),
        // A file that the line changes in a way that it does not show.
        ("echo ls > f; $(cat f) a", false),
        ("echo ls > f; sed -i s/ls/rm/ f; $(cat f) a", true),
        ("echo ls > f; b > f; $(cat f) a", true),
        // A script that is not shown, whatever the line sets.
        ("for _ in 1 2; do cat f | xargs sh -c; done", true),
        ("_=ls; cat f | xargs sh -c", true),
        ("_=ls; $_ a", true),
        ("\u{fdd0} a", true),
        ("a '\u{fdd0}'", false),
        ("for _ in 1 2; do ls; done", false),
        ("printf \"'%c' v\" r | sh", true),
        ("cat f | xargs /bin/sh -c", true),
        ("cat f | xargs env sh -ce", true),
        ("cat f | xargs env", true),
        ("ls | xargs bash x.sh; ls | xargs rm", false),
        ("ls | xargs -I{} sh -c 'r{} a'", true),
        // Braces in the name of a program.
        ("r{m..m} a", true),
        ("{r,x}{m,y} a", true),
        ("\"r\"{m,x} a", true),
        ("rm a{1..3} {a,b}{c,d}; find . -exec ls {} +", false),
        // Wildcards in the name of a program.
        ("[r]m a", true),
        ("/bin/[r]m a", true),
        ("[ -f a ]", false),
        ("for p in /bin/*; do \"$p\" a; done", true),
        ("for p in test-*; do ./bin/run $p; done", false),
        // Texts that a shell reads in a way that is not followed.
        ("echo a > t.sh; find . -name 't*' -exec sh {} \\;", true),
        ("{ bash -e; } <<'E'\nrm a\nE", true),
        ("go() { bash; }; go <<'E'\nrm a\nE", true),
        ("exec <<< 'rm a'; bash", true),
        ("BASH_ENV=$PWD/e.sh bash -c true", true),
        ("git config --global alias.x '!rm a'; git x", true),
        ("ENV=test npm test; git config user.name a", false),
        // Values of other languages.
        ("awk 'BEGIN{c=\"rm \" a; system(c)}'", true),
        ("awk -v c=\"$X\" 'BEGIN{system(c)}'", true),
        ("awk 'BEGIN{c=\"git log\"; c | getline h; close(c); print h}'", false),
        ("awk 'BEGIN { c = \"ls\"; while ((c | getline l) > 0) print l; close(c) }'", false),
        ("ls | awk '{print \"rm \" $1 | \"sh\"}'", true),
        ("ls | awk '{print $1 | \"sort\"}'", false),
        ("perl -e 'my $c = \"ls\"; $c .= shift; system($c);'", true),
        ("perl -e 'my @c = (\"ls\", \"-l\"); system(@c)'", false),
        ("ruby -e 'c=\"ls\"; system(c)'", false),
        ("ruby -e 'puts \"exec(cmd)\"'", false),
        ("ruby -e 'eval \"exec(cmd)\"'", true),
        ("php -r 'foreach([\"ls\", \"pwd\"] as $c) echo shell_exec($c);'", false),
        ("node -e 'const go = (c) => execSync(c, {}); go(\"ls\")'", false),
        ("node -e 'const go = (c) => execSync(c, {}); go(x)'", true),
        ("node -e 'execSync(`${t} a`)'", true),
        ("node -e 'execSync(`git log ${t}`)'", false),
        ("node -e 'execSync(o.clean)'", true),
        ("node -e 'execSync(\"bash\", {input: \"rm a\"})'", true),
        ("node -e 'let c = \"ls\"; function f(c) { execSync(c); } f(\"rm a\")'", true),
        ("node -e 'let c = \"ls\"; c += \"; rm a\"; execSync(c)'", true),
        ("node -e 'let c = \"ls\"; [c] = [\"rm a\"]; execSync(c)'", true),
        ("node -e 'let c = \"ls\"; if ([c] == x) execSync(c)'", false),
        // Variables that a command sets.
        ("X=ls; printf -vX rm; $X a", true),
        ("X=ls; printf -v 'X[0]' rm; $X a", true),
        ("X=ls; printf '%s' X; $X a", false),
        ("X=ls; read -raX; $X a", true),
        ("X=ls; wait -pX; $X a", true),
        ("REPLY=ls; read; $REPLY a", true),
        // PowerShell, and what only looks like it.
        ("Get-Item a; & $cmd", true),
        ("Get-Item a; iex $x", true),
        ("Get-Item a; $x | iex", true),
        ("Get-Item a; $x a", true),
        ("Get-Item a; $x -rf a", true),
        ("read x; Get-Item a; $x", true),
        ("A-B; $x", true),
        ("Get-Item a; $x.Count; $y -join ','", false),
        ("Get-ChildItem | ForEach-Object { \"$($_.Name) is here\" }", false),
        ("$x=Get-Content a; Get-Item b; $sum += $x.Length", false),
        ("$x = Get-ChildItem; foreach ($f in $x) { $f.Name }", false),
        ("1..5 | ForEach-Object { $_ * 2 }", false),
        // A file that the line writes, and another one with its name.
        ("echo a > w/x.sh; sh x.sh", false),
        ("echo a > x.sh; cd \"$D\"; sh x.sh", true),
        ("echo a > x.sh; env -C w sh x.sh", true),
        ("echo 'import os' > c.py; cd \"$D\"; python3 c.py", true),
        ("cd \"$D\"; echo a > x.sh; sh x.sh", false),
    ] {
        assert_eq!(read(line).has_unknown, has_unknown, "{line}");
    }
}

#[test]
fn the_arguments_of_parallel_are_in_its_commands() {
    for (line, commands, has_unknown) in [
        ("parallel rm ::: a 'b c'", &["rm a", "rm b␣c"] as &[&str], false),
        ("parallel -j4 'cat {} | wc' ::: a", &["cat a", "wc <|cat␣a"], false),
        ("parallel {1} {2} ::: rm ::: a b", &["rm a", "rm b"], false),
        ("parallel ::: 'rm a' b", &["rm a", "b"], false),
        ("parallel mv {} {.}.x ::: a.b", &["mv a.b $_.x"], false),
        ("ls | parallel rm -f", &["rm -f <|ls"], false),
        ("parallel rm :::: list", &["rm"], false),
        ("cat list | parallel", &[], true),
        ("parallel {.} a ::: rm.x", &[], true),
        ("parallel --version", &[], false),
    ] {
        let read = read(line);
        let found: Vec<&String> = read.commands.iter().filter(|it| !it.starts_with("parallel")).collect();
        let is_all = commands.iter().all(|command| found.iter().any(|it| it.starts_with(*command)));
        assert!(is_all && read.has_unknown == has_unknown, "{line}: {read:#?}");
    }
}

#[test]
fn commands_in_variables_of_programs_are_possible() {
    let patterns: OneOrList<crate::values::Pattern> = serde_json::from_str("\"^rm \"").unwrap();
    for (line, expected) in [
        ("GIT_PAGER='rm a' git -p log", Judgement::Unknown),
        ("export GIT_EDITOR='rm a'; git commit", Judgement::Unknown),
        ("env PAGER='rm a' man x", Judgement::Unknown),
        ("GIT_SSH_COMMAND=\"sh -c 'rm a'\" git push", Judgement::Unknown),
        ("LESSOPEN='|rm a' less x", Judgement::Unknown),
        ("EDITOR=$X git commit", Judgement::Unknown),
        ("GIT_PAGER=cat git log; EDITOR=true git commit", Judgement::False),
        ("GIT_SSH_COMMAND=\"ssh -i $HOME/.ssh/k\" git push", Judgement::False),
        ("git commit -m 'PAGER=rm a'", Judgement::False),
        ("GIT_PAGER=cat rm a", Judgement::True),
        // The program uses no editor and no pager.
        ("EDITOR='rm a' ls", Judgement::False),
        ("PAGER='rm a' /opt/ls", Judgement::Unknown),
        ("ls() { git log; }; PAGER='rm a' ls", Judgement::Unknown),
    ] {
        assert_eq!(read(line).runs(&patterns), expected, "{line}");
    }
}

#[test]
fn cat_and_no_value_are_no_pager() {
    let cat: OneOrList<crate::values::Pattern> = serde_json::from_str("\"^cat( |$)\"").unwrap();
    for line in ["GIT_PAGER=cat git log", "PAGER='' git diff", "MANPAGER=cat man ls", "PAGER= git log"] {
        assert_eq!(read(line).runs(&cat), Judgement::False, "{line}");
    }
    for line in ["export PAGER=cat; git log", "env GIT_PAGER=cat git log"] {
        assert_eq!(read(line).runs(&cat), Judgement::False, "{line}");
    }
    assert!(read("export PAGER=cat; git log").possible.is_empty());
    assert_eq!(read("GIT_PAGER='cat -v' git log").runs(&cat), Judgement::Unknown);
    assert_eq!(read("EDITOR=cat git commit").runs(&cat), Judgement::Unknown);
}

#[test]
fn the_name_of_the_tool_shows_the_language() {
    let is_unknown = |line: &str, tool: &str| CommandLine::read(line, Dialect::of_tool(Some(tool))).has_unknown;
    assert!(is_unknown("Get-Item a; $x.Count", "Bash") && is_unknown("$x -eq 1", "bash"));
    assert!(!is_unknown("Get-Item a; $x.Count", "shell") && !is_unknown("$x.Count", "powershell"));
    assert!(is_unknown("& $x", "pwsh"));
}

#[test]
fn programs_that_run_others_are_read_alike() {
    let pattern = OneOrList(vec!["^rm( |$)".parse().unwrap()]);
    for line in [
        "echo 'rm v' | sudo --user root tee x.sh; sh x.sh",
        "/bin/echo rm v | sh",
        "command echo rm v | sh",
        "env X=1 echo rm v | sh",
        "echo rm v > f; sudo cp f g; sh g",
        "retry bash -ce 'rm v'",
        "retry bash -e -o pipefail -c 'rm v'",
        "docker run i -ec 'rm v'",
        "su -c'rm v'",
        "env 1=2 a.b=c rm v",
        "hyperfine 'X=1 rm v'",
        "hyperfine --prepare 'rm v' ls",
        "hyperfine -w 3 ls --cleanup='rm v'",
        "nvm exec 20 rm v",
        "fnm exec --using=20 rm v",
        "volta run rm v",
        "perf stat -e cycles -- rm v",
        "devcontainer exec --workspace-folder . rm v",
        "lxc exec c -- rm v",
        "aws-vault exec p -- rm v",
        "infisical run -- rm v",
        "wsl -e bash -c 'rm v'",
        "npx shx rm v",
        "npx dotenv-cli -- rm v",
        "npx env-cmd -f .env rm v",
        "ssh-agent rm v",
        "sudo -s <<'E'\nrm v\nE",
        "echo 'rm v' | sudo -u app -i",
        // A script that `sed` makes.
        "echo 'ls v' > c.sh; sed -i 's/ls/rm/' c.sh; sh c.sh",
        "echo '@C@ v' > c.in; sed s/@C@/rm/ c.in > c.sh; sh c.sh",
        "concurrently 'X=1 rm v' 'ls -l'",
        "Invoke-Expression 'rm v'",
        "bash -oc pipefail 'rm v'",
        // Scripts that the line writes.
        "cat > w/c.sh <<'E'\nrm v\nE\ncd w && bash c.sh",
        "cd w && echo 'rm v' > c.sh && cd .. && sh w/c.sh",
        "{ echo '#!/bin/sh'; echo 'rm v'; } > c.sh; sh c.sh",
        "for d in v; do echo \"rm $d\"; done > c.sh; sh c.sh",
        "echo 'rm v' > t1.sh; for t in t*.sh; do bash \"$t\"; done",
        "dd of=c.sh <<'E'\nrm v\nE\nsh c.sh",
        "gen() { echo 'rm v'; }; gen | sh",
        "gen() { echo 'rm v'; }; eval \"$(gen)\"",
    ] {
        assert_eq!(read(line).runs(&pattern), Judgement::True, "{line}");
    }
}

#[test]
fn an_option_of_the_command_of_npx_is_none_of_npx() {
    let read = read("npx rimraf -c x");
    assert_eq!(
        (read.commands.as_slice(), read.has_unknown),
        (["npx rimraf -c x", "rimraf -c x"].map(String::from).as_slice(), false)
    );
}

#[test]
fn a_variable_that_a_branch_may_set_has_several_values() {
    let pattern = OneOrList(vec!["^rm( |$)".parse().unwrap()]);
    let git = OneOrList(vec!["^git ".parse().unwrap()]);
    for (line, expected) in [
        ("if a; then C=rm; else C=ls; fi; $C v", Judgement::Unknown),
        ("if a; then C=ls; elif b; then C=rm; fi; $C v", Judgement::Unknown),
        ("if a; then C='rm v'; else C='rm -f v'; fi; $C", Judgement::True),
        ("if a; then C=ls; $C v; else C=git; fi; $C v", Judgement::False),
        ("C=rm; [ -n \"$D\" ] && C=echo; $C v", Judgement::Unknown),
        ("[ -n \"$D\" ] && R=echo; $R rm v", Judgement::Unknown),
        ("a && C=rm || C=ls; $C v", Judgement::Unknown),
        ("a || C=rm; $C v", Judgement::Unknown),
        ("cd a && C=ls && $C v", Judgement::False),
        ("case $1 in '') C=rm;; *) C=ls;; esac; $C v", Judgement::Unknown),
        ("case $1 in '') C=git;; *) C=ls;; esac; $C v", Judgement::False),
        ("C=ls; for i in 1 2; do $C v; C=rm; done", Judgement::Unknown),
        ("C=rm; while a; do C=ls; done; $C v", Judgement::Unknown),
        ("C=rm; echo | C=ls; $C v", Judgement::Unknown),
        ("C=rm; C=ls & $C v", Judgement::Unknown),
        ("C=rm; f() { C=ls; }; $C v", Judgement::True),
        ("C=ls; f() { C=rm; }; f; $C v", Judgement::Unknown),
        ("C=ls; f() { $C v; }; C=rm; f", Judgement::Unknown),
        // A subshell does not change the variables of the line.
        ("C=rm; (C=ls; $C); $C v", Judgement::True),
        ("C=ls; (C=rm); $C v", Judgement::False),
        ("C=ls; x=$(C=rm; echo a); $C v", Judgement::False),
        ("C=rm; sh -c 'C=ls'; $C v", Judgement::True),
        ("C=rm; eval 'C=ls'; $C v", Judgement::False),
        ("set -- rm; if a; then set -- ls; fi; \"$@\" v", Judgement::Unknown),
        ("if a; then P=python3; else P=python; fi; C=\"$P -m pytest\"; $C -q", Judgement::False),
    ] {
        assert_eq!(read(line).runs(&pattern), expected, "{line}");
    }
    // A rule that allows needs all readings.
    for (line, expected) in [
        ("if git a; then C=status; else C=diff; fi; git $C", Judgement::True),
        ("if git a; then C=git; else C=ls; fi; $C v", Judgement::Unknown),
        ("if git a; then C=rm; else C=ls; fi; $C v", Judgement::False),
    ] {
        let line = CommandLine { others: Vec::new(), ..read(line) };
        assert_eq!(line.runs_only(&git), expected);
    }
}

#[test]
fn calls_of_a_program_in_python_are_read() {
    let pattern = OneOrList(vec!["^rm( |$)".parse().unwrap()]);
    for (code, expected) in [
        ("import os; c = 'rm'; os.system(c + ' v')", Judgement::True),
        ("import os; os.system('echo;' + 'rm v')", Judgement::True),
        ("import os; os.system(' '.join(['rm', 'v']))", Judgement::True),
        ("import subprocess; c = 'rm'; subprocess.run([c, 'v'])", Judgement::True),
        ("import subprocess; c = 'rm v'; subprocess.run(['sh', '-c', c])", Judgement::True),
        ("import subprocess; c = ['rm']; c.append('v'); subprocess.call(c)", Judgement::True),
        ("from os import system as q; q('rm v')", Judgement::True),
        ("import subprocess as s\nc = 'rm v'\ns.run(c, shell=True)", Judgement::True),
        ("import os; c = 'rm'; os.system(f'{c} v')", Judgement::True),
        ("import subprocess; c = ['rm']; subprocess.run(c + ['v'])", Judgement::True),
        // The first word of a list for a shell is the text.
        ("import subprocess; subprocess.run(['rm v; ls', 'x'], shell=True)", Judgement::True),
        ("import subprocess; subprocess.Popen(('rm v',), shell=True)", Judgement::True),
        ("import subprocess; subprocess.run(['bash'], input='rm v', text=True)", Judgement::True),
        // A name with several values.
        ("import subprocess\nc = 'ls'\ndef go(c):\n    subprocess.run(c, shell=True)\ngo('rm v')", Judgement::True),
        ("import subprocess\nc = 'ls'\nfor c in ['ls', 'rm v']:\n    subprocess.run(c, shell=True)", Judgement::True),
        ("import os\nc = 'ls'\nc, w = 'rm v', 'old'\nos.system(c)", Judgement::Unknown),
        ("import os\nc = 'ls'\nc: str = 'rm v'\nos.system(c)", Judgement::True),
        ("import os\nc = 'ls'\nif (c := 'rm v'): os.system(c)", Judgement::Unknown),
        ("import os\nc = 'ls'\nos.system(c)\nc = 'rm v'\nos.system(c)", Judgement::True),
        ("import os\nc = 'rm v'\nc = 'ls'\nos.system(c)", Judgement::False),
        ("import os\nc = 'rm v'\nd = c\nc = 'ls'\nos.system(d)", Judgement::True),
        // Alternatives.
        ("import os\nos.system('ls' if x else 'rm v')", Judgement::Unknown),
        ("import os\nos.system('rm v' if x else 'rm -f v')", Judgement::True),
        ("import os\nif x:\n    c = 'rm v'\nelse:\n    c = 'ls'\nos.system(c)", Judgement::Unknown),
        ("import os\ndef go(c='rm v'):\n    os.system(c)\ngo('ls')", Judgement::Unknown),
        ("import os\nt = {'a': 'rm v', 'b': 'ls'}\nos.system(t[x])", Judgement::Unknown),
        ("import os\nt = {'a': 'rm v', 'b': 'ls'}\nos.system(t[\"b\"])", Judgement::False),
        ("import os\nt = {'a': 'rm v', 'b': 'ls'}\nos.system(t['a'])", Judgement::True),
        ("import os\nt = ['rm v', 'ls']\nos.system(t[1])", Judgement::False),
        ("import os\nt = ['rm v', 'ls']\nt.reverse()\nos.system(t[1])", Judgement::Unknown),
        ("import subprocess\nc = ['echo', 'rm', 'v']\nc.pop(0)\nsubprocess.run(c)", Judgement::Unknown),
        ("import subprocess\nc = ['echo', 'rm', 'v']\ndel c[0]\nsubprocess.run(c)", Judgement::Unknown),
        ("import subprocess\nt = ['rm', 'ls', 'v']\nsubprocess.run(t[1:])", Judgement::False),
        ("import subprocess\nt = ['sudo', 'rm', 'v']\nsubprocess.run(t[1:])", Judgement::True),
        (
            "import os\nfor c in ['ls', 'rm v']:\n    if c.startswith('rm'):\n        continue\n    os.system(c)",
            Judgement::Unknown,
        ),
        ("import subprocess\nsubprocess.run(['bash', '-n'], input='rm v', text=True)", Judgement::False),
        ("import subprocess\nc = ['-f']\nc.insert(0, 'rm')\nsubprocess.run(c)", Judgement::Unknown),
        ("import subprocess\nc = ['ls']\nc[0] = 'rm'\nsubprocess.run(c)", Judgement::Unknown),
        // Values that are all shown.
        ("import subprocess, sys\nsubprocess.run(f'{sys.executable} -m pytest', shell=True)", Judgement::False),
        ("import subprocess\ne = './a'\nsubprocess.run(f'{e} < in.txt', shell=True)", Judgement::False),
        ("import subprocess\nA = Path('build/app')\nsubprocess.run([A, '-V'])", Judgement::False),
        ("import subprocess, os\nA = os.path.join('build', 'app')\nsubprocess.run([A, '-V'])", Judgement::False),
        ("import subprocess\nfor c in ['npm test', 'ls']:\n    subprocess.run(c, shell=True)", Judgement::False),
        (
            "import subprocess\ndef go(c):\n    subprocess.run(c, shell=True, text=True)\ngo('git status')",
            Judgement::False,
        ),
        (
            "import subprocess\nt = {'a': ['./a', '1']}\nfor n, c in t.items():\n    print(n, subprocess.run(c))",
            Judgement::False,
        ),
        (
            "import subprocess\nb = ['python', '-m']\nfor a in (['x'], ['y']):\n    subprocess.run(b + a)",
            Judgement::False,
        ),
        ("import subprocess\nc = ['npm', 'test'] if t else ['npx', 'jest']\nsubprocess.run(c)", Judgement::False),
        ("import subprocess\nsubprocess.run(\n    c, shell=True,\n)\nc = 'ls'", Judgement::False),
        // A part of each element.
        ("import os\nfor n, c in [('rm', 'npm test'), ('b', 'ls')]:\n    os.system(c)", Judgement::False),
        ("import os\nfor n, c in [('a', 'npm test'), ('b', 'rm v')]:\n    os.system(c)", Judgement::True),
        ("import os\nfor c, n in [('rm v', 'a')]:\n    os.system(c)", Judgement::True),
        ("import os\nfor n, c in enumerate(['rm v']):\n    os.system(c)", Judgement::Unknown),
        ("import os\nfor n, c in [('a', *b)]:\n    os.system(c)", Judgement::Unknown),
        ("import subprocess\nt = [('a', ['npm', 'test'])]\nfor n, c in t:\n    subprocess.run(c)", Judgement::False),
        ("import os; c = 'rm'; os.system('%s v' % c)", Judgement::True),
        ("import os; os.system('cd a && ' + c)", Judgement::Unknown),
        ("import os; c = ''; c += 'rm v'; os.system(c)", Judgement::True),
        ("import subprocess; subprocess.run(cmd)", Judgement::Unknown),
        ("import subprocess; subprocess.run([sys.executable, a])", Judgement::False),
        ("import subprocess; subprocess.run(['git', 'show', *a])", Judgement::False),
        ("import subprocess; subprocess.run(f'pytest {a}', shell=True)", Judgement::False),
        ("s = s.replace('subprocess.run(cmd)', 'subprocess.run(cmd, check=True)')", Judgement::False),
        ("s = '''\nsubprocess.run(cmd)\n'''", Judgement::False),
        ("# see subprocess.run(cmd)\nprint(1)", Judgement::False),
        ("exec('import os; os.system(cmd)')", Judgement::Unknown),
    ] {
        let line = format!("python3 - <<'E'\n{code}\nE");
        assert_eq!(read(&line).runs(&pattern), expected, "{code}");
    }
}

#[test]
fn the_arguments_of_functions_that_evaluate_them_are_possible_commands() {
    let pattern = OneOrList(vec!["^rm( |$)".parse().unwrap()]);
    for (line, expected) in [
        ("f() { eval \"$1\"; }; f 'rm v'", Judgement::True),
        ("f() { echo \"+ $1\"; sh -c \"$1\"; }\nf ls\nf 'rm v'", Judgement::True),
        ("f() { local c=\"$1\"; eval \"$c\"; }; f 'rm v'", Judgement::True),
        ("f() { shift; eval \"$1\"; }; f a 'rm v'", Judgement::True),
        ("f() { d=$1; shift; \"$@\"; }; f x rm v", Judgement::True),
        ("x && f() { eval \"$1\"; }; f 'rm v'", Judgement::Unknown),
        ("f() { while [ \"$1\" = -v ]; do shift; done; \"$@\"; }; f -v rm v", Judgement::Unknown),
        ("f() { \"$@\"; }; f rm v", Judgement::True),
        ("f() { \"$@\"; }; f git commit -m 'rm v'", Judgement::False),
        ("f() { eval \"$1\"; }; f 'make test' 'rm v'", Judgement::False),
        ("f() { d=$1; shift; \"$@\"; }; f a make test", Judgement::False),
        ("f() { echo \"$1\"; \"$2\" \"$3\"; }; f clean rm v", Judgement::True),
        ("f() { timeout 5 \"$2\" \"$3\"; }; f clean rm v", Judgement::True),
        ("f() { echo \"$1\"; \"$2\" \"$3\"; }; f rm ls v", Judgement::False),
    ] {
        assert_eq!(read(line).runs(&pattern), expected, "{line}");
    }
}

#[test]
fn the_arguments_of_a_call_are_put_into_the_commands_of_a_function() {
    let pattern = OneOrList(vec!["^rm -rf v$".parse().unwrap()]);
    for line in ["f() { \"$2\" -rf v; }; f a rm", "f() { $1 -rf $2; }; f rm v", "f() { shift; \"$1\" -rf v; }; f a rm"]
    {
        assert_eq!(read(line).runs(&pattern), Judgement::True, "{line}");
        let line = format!("x && {line}");
        assert_eq!(read(&line).runs(&pattern), Judgement::Unknown, "{line}");
    }
}

#[test]
fn a_function_of_the_line_is_no_program() {
    let pattern = OneOrList(vec!["^rm -rf v".parse().unwrap()]);
    for (line, expected) in [
        ("rm() { echo \"stub rm $*\"; }; rm -rf v", Judgement::False),
        ("function rm { echo \"rm $*\" >> l; }; rm -rf v", Judgement::False),
        ("f() { rm \"$@\"; }; f -rf v", Judgement::True),
        ("f() { rm ${1:--rf} \"$2\"; }; f '' v", Judgement::True),
        ("rm() { command rm \"$@\"; }; rm -rf v", Judgement::True),
        ("f() { g \"$@\"; }; g() { rm \"$@\"; }; f -rf v", Judgement::True),
        ("f() { for a in \"$@\"; do ls \"$a\"; f \"$a\"; done; }; f v", Judgement::False),
        // The shell may not have the function, or another shell runs the command.
        ("x && rm() { :; }; rm -rf v", Judgement::True),
        ("if x; then rm() { :; }; fi; rm -rf v", Judgement::True),
        ("(rm() { :; }; rm a); rm -rf v", Judgement::True),
        ("x=$(rm() { :; }); rm -rf v", Judgement::True),
        ("rm() { :; }; sh -c 'rm -rf v'", Judgement::True),
        ("rm() { :; }; sudo rm -rf v; /bin/rm -rf v", Judgement::True),
        ("sh -c 'rm() { :; }'; rm -rf v", Judgement::True),
        ("rm() { :; }; unset -f rm; rm -rf v", Judgement::True),
        // The path of a program is no function.
        ("rm() { :; }; $(which rm) -rf v", Judgement::True),
        ("rm() { :; }; \"$(type -P rm)\" -rf v", Judgement::True),
        ("R=$(command -v rm); rm() { :; }; \"$R\" -rf v", Judgement::True),
        ("f() { rm() { :; }; }; rm -rf v", Judgement::True),
    ] {
        assert_eq!(read(line).runs(&pattern), expected, "{line}");
    }
    // A rule that allows does not have to name the functions.
    let allowed = OneOrList(vec!["^(echo|cargo|git)( |$)".parse().unwrap()]);
    for (line, expected) in [
        ("check() { git diff --quiet; }; check && echo clean", Judgement::True),
        ("run() { echo \"+ $*\"; \"$@\"; }; run cargo test; run git status", Judgement::True),
        ("run() { echo \"+ $*\"; \"$@\"; }; run cargo test; run npm test", Judgement::False),
        ("run() { git status; }; \"$@\"", Judgement::False),
    ] {
        assert_eq!(read(line).runs_only(&allowed), expected, "{line}");
    }
}

#[test]
fn a_script_that_the_line_writes_gets_its_arguments() {
    let pattern = OneOrList(vec!["^git reset --hard".parse().unwrap()]);
    for line in [
        "echo 'git \"$@\"' > g.sh; bash g.sh reset --hard",
        "echo 'git reset $1' > g.sh; sh g.sh --hard",
        "echo 'H=${1:-x}; git reset $H' > g.sh; sh g.sh --hard",
        "echo 'git \"$@\"' > g.sh; ./g.sh reset --hard",
        "sh -s reset --hard <<'E'\ngit \"$@\"\nE",
    ] {
        assert_eq!(read(line).runs(&pattern), Judgement::True, "{line}");
    }
}

#[test]
fn a_script_that_the_line_writes_runs_only_under_its_path() {
    let pattern = OneOrList(vec!["^rm( |$)".parse().unwrap()]);
    for (line, expected) in [
        ("cat > w/x.sh <<'E'\nrm v\nE\ncd w && sh x.sh", Judgement::True),
        ("cat > w/x.sh <<'E'\nrm v\nE\n(cd w && ./x.sh)", Judgement::True),
        ("mkdir w && cd w && echo 'rm v' > x.sh\nsh x.sh", Judgement::True),
        ("echo 'rm v' > a/x.sh; echo ls > b/x.sh; cd b && sh x.sh", Judgement::False),
        ("echo 'rm v' > a/x.sh; echo ls > b/x.sh; (cd b && sh x.sh)", Judgement::False),
        ("echo 'rm v' > x.sh; cd b; sh x.sh", Judgement::False),
        ("echo 'rm v' > scripts/x.sh; sh x.sh; ./x.sh", Judgement::False),
        ("echo 'rm v' > x.sh; [ -d b ] && cd b; sh x.sh", Judgement::Unknown),
        ("echo 'rm v' > x.sh; for d in a b; do cd $d; sh x.sh; done", Judgement::Unknown),
        ("echo 'rm v' > x.sh; go() { cd b; }; go; sh x.sh", Judgement::Unknown),
        ("echo 'rm v' > x.sh; cd \"$D\" && sh x.sh", Judgement::Unknown),
        ("echo ls > t1.sh; echo 'rm v' > t2.sh; for t in t*.sh; do sh \"$t\"; done", Judgement::True),
        // The last text of a file.
        ("echo 'rm v' > x.sh; echo ls > x.sh; sh x.sh", Judgement::False),
        ("echo ls > x.sh; echo 'rm v' >> x.sh; sh x.sh", Judgement::True),
        ("echo 'rm v' > x.sh; if a; then echo ls > x.sh; fi; sh x.sh", Judgement::True),
        // The syntax of a script is checked.
        ("echo 'rm v' > x.sh; bash -n x.sh && echo ok", Judgement::False),
        ("sh -n <<'E'\nrm v\nE", Judgement::False),
        ("echo 'rm v' > x.sh; bash -en x.sh; bash -n +n x.sh", Judgement::True),
        ("echo 'rm v' > x.sh; bash -norc x.sh", Judgement::True),
        ("echo \"execSync('rm v')\" > c.js; node --check c.js", Judgement::False),
        ("echo \"execSync('rm v')\" > c.js; node c.js --check", Judgement::True),
        ("echo \"import os; os.system('rm v')\" > c.py; python3 -m py_compile c.py", Judgement::False),
        ("echo \"import os; os.system('rm v')\" > c.py; python3 -m cProfile c.py", Judgement::True),
        ("echo \"system('rm v');\" > c.pl; perl -c c.pl; ruby -c c.pl", Judgement::False),
        ("echo \"BEGIN { system('rm v') }\" > c.pl; perl -c c.pl", Judgement::True),
    ] {
        assert_eq!(read(line).runs(&pattern), expected, "{line}");
    }
}

#[test]
fn variables_of_other_languages_have_the_texts_that_the_program_gives_them() {
    let pattern = OneOrList(vec!["^rm( |$)".parse().unwrap()]);
    for (line, expected) in [
        ("awk 'BEGIN{c=\"rm a\"; system(c)}'", Judgement::True),
        ("awk 'BEGIN{c=\"ls\"; if (x) c = \"rm a\"; system(c)}'", Judgement::Unknown),
        ("perl -e 'my $c = \"rm a\"; system($c);'", Judgement::True),
        ("perl -e 'my @c = (\"rm\", \"a\"); system(@c);'", Judgement::True),
        ("perl -e 'my $c = \"ls\"; $c =~ s/ls/rm/; system($c);'", Judgement::Unknown),
        ("php -r 'foreach([\"ls\", \"rm a\"] as $c) shell_exec($c);'", Judgement::Unknown),
        ("node -e 'const go = (c) => execSync(c, {}); go(\"ls\"); go(\"rm a\")'", Judgement::True),
        ("node -e '[\"ls\", \"rm a\"].forEach(s => cp.execSync(s))'", Judgement::True),
        ("node -e '[\"ls\", \"npm test\"].forEach((s) => cp.execSync(s))'", Judgement::False),
        ("node -e 'for (const s of [\"npm test\"]) cp.execSync(s)'", Judgement::False),
        ("node -e 'for (let s of [\"ls\"]) { s = f(s); cp.execSync(s) }'", Judgement::Unknown),
        ("node -e '[\"ls\", c].forEach(s => cp.execSync(s))'", Judgement::Unknown),
    ] {
        assert_eq!(read(line).runs(&pattern), expected, "{line}");
    }
}

#[test]
fn the_texts_that_perl_and_ruby_run_are_read_in_all_their_quotes() {
    let pattern = OneOrList(vec!["^rm v( |$)".parse().unwrap()]);
    for (line, expected) in [
        ("perl -e 'exec qw(rm v)'", Judgement::True),
        ("perl -e 'system(\"rm\", qw/v w/)'", Judgement::True),
        ("perl -e 'exec {\"rm\"} \"name\", \"v\"'", Judgement::True),
        ("perl -e 'system q#rm v#; print qx|ls|'", Judgement::True),
        ("perl -e 'system(\"r\" . \"m v\")'", Judgement::True),
        ("perl -e 'my @c = qw(rm v); system @c'", Judgement::True),
        ("perl -e 'open(my $f, \"-|\", \"rm\", \"v\")'", Judgement::True),
        ("perl -e 'open F, \"rm v |\"'", Judgement::True),
        ("perl -MIPC::Open3 -e 'open3(my $i, my $o, undef, \"rm\", \"v\")'", Judgement::True),
        ("perl -e 'exec shift' 'rm v'", Judgement::Unknown),
        ("perl -e 'system(\"r\" . $c)'", Judgement::Unknown),
        ("perl -e 'open(F, \"-|\", @c)'", Judgement::Unknown),
        ("ruby -e 'system(*%w[rm v])'", Judgement::True),
        ("ruby -e 'c = %w[rm v]; exec(*c)'", Judgement::True),
        ("ruby -e 'system({\"A\" => \"b\"}, \"rm\", \"v\")'", Judgement::True),
        ("ruby -e 'system %q(rm v)'", Judgement::True),
        ("ruby -ropen3 -e 'Open3.capture2(\"rm v\")'", Judgement::True),
        ("ruby -e 'system ARGV.join(\" \")' rm v", Judgement::Unknown),
        ("ruby -e \"%x'rm v'\"", Judgement::True),
        ("ruby -e '%x\"rm v\"'", Judgement::True),
        ("ruby -e 'send(:system, \"rm v\")'", Judgement::True),
        ("ruby -e 'system RbConfig.ruby, \"-e\", \"exec(%q(rm v))\"'", Judgement::True),
        ("ruby -e '$c = \"rm v\"; system($c)'", Judgement::True),
        ("ruby -e 'IO.read(\"|rm v\")'", Judgement::True),
        ("ruby -e 'system(<<~E)\nrm v\nE\n'", Judgement::True),
        ("ruby -e 'C = [\"rm\", \"v\"].join(\" \"); system(C)'", Judgement::Unknown),
        ("ruby -e 'system(ENV[\"C\"])'", Judgement::Unknown),
        ("ruby -e 'ARGV.each { |c| system c or exit 1 }' 'rm v'", Judgement::Unknown),
        ("ruby -e 'system ENV[\"C\"]'", Judgement::Unknown),
        ("ruby -e 'system($stdin.read)'", Judgement::Unknown),
        ("ruby -e 'system(File.read(\"c\"))'", Judgement::Unknown),
        ("ruby -e 'puts \"#{system(c)}\"'", Judgement::Unknown),
        ("ruby -e 'def system(c); super; end; system(c)'", Judgement::Unknown),
        ("perl -e 'readpipe(\"rm v\")'", Judgement::True),
        ("perl -e 'system <<E;\nrm v\nE\n'", Judgement::True),
        ("perl -e 'system(lc \"RM V\")'", Judgement::Unknown),
        ("perl -e 'exec(split / /, \"rm v\")'", Judgement::Unknown),
        ("perl -e 'system(\"sh\", \"-c\", $c)'", Judgement::Unknown),
        ("perl -e 's/a/system($c)/e; print \"a\"'", Judgement::Unknown),
        // Honest programs.
        ("perl -pi -e 's/system/exec/' f", Judgement::False),
        ("perl -e 'open(my $f, \"<\", $ARGV[0]) or die; print <$f>' f", Judgement::False),
        ("perl -e 'exec \"npm\", \"exec\", \"tsc\"'", Judgement::False),
        ("ruby -e 'Dir[\"*.rb\"].each { |f| system \"ruby\", \"-c\", f }'", Judgement::False),
        ("ruby -e 'puts \"%s %x\" % [\"a\", 255]; open(\"f\") { |f| puts f.read }'", Judgement::False),
        ("ruby -e 'puts \"\nsystem tests\n\"'", Judgement::False),
        ("ruby -e 'c = \"npm test\"; system c or exit 1'", Judgement::False),
        ("ruby -e 'def spawn(x); x; end; puts spawn(y)'", Judgement::False),
        ("ruby -e 'puts File.read(\"a\").gsub(/exec(c)/, \"x\")'", Judgement::False),
        ("ruby -e 'system(RbConfig.ruby, \"-c\", f, exception: true)'", Judgement::False),
        ("perl -ne 'print if /system shift;/' f", Judgement::False),
        ("perl -pi -e 's/system $cmd/x/' /tmp", Judgement::False),
        ("perl -e 'system(\"git\", \"log\", $f)'", Judgement::False),
    ] {
        assert_eq!(read(line).runs(&pattern), expected, "{line}");
    }
}

#[test]
fn the_operands_of_the_options_of_a_wrapper_are_no_commands() {
    for line in [
        "bwrap --ro-bind / / --dev /dev --setenv A b --chdir /w rm v",
        "bwrap --unshare-all --overlay a b c -- rm v",
        "unshare --map-user 0 --root / rm v",
        "nsenter -t 1 -w --net-socket 3 rm v",
        "chroot --userspec 0:0 / rm v",
        "setpriv --reuid 0 --clear-groups rm v",
        "setarch -R rm v",
        "setarch x86_64 -R rm v",
        "numactl -N 0 --membind 0 rm v",
        "systemd-run -t --working-directory /w rm v",
        "flatpak-spawn --host --env A=b rm v",
        "proot -r / -b /a:/b -w / rm v",
        "fakeroot -s f -- rm v",
        "faketime -f '@2020-01-01' rm v",
        "script -q /dev/null rm v",
        "chrt --batch rm v",
        "chrt -d --sched-runtime 5 0 rm v",
        "gdb -batch -ex run --args rm v",
        "gdb -batch -ex 'run v' rm",
        "gdb --eval-command='shell rm v' a",
        "ltrace -n 2 -o f rm v",
        "strace --string-limit 100 rm v",
        "perf record --call-graph dwarf -- rm v",
        "perf stat record -o f rm v",
        "perf lock record rm v",
        "ip netns exec a rm v",
        "schroot -c a -- rm v",
    ] {
        assert!(read(line).commands.iter().any(|command| command == "rm v"), "{line}: {:?}", read(line).commands);
    }
    for line in ["gdb -batch -ex bt rm core", "perf report rm v", "script -c ls rm v", "chrt -p 1"] {
        assert_eq!(read(line).commands.iter().filter(|command| command.starts_with("rm")).count(), 0, "{line}");
    }
}

#[test]
fn elements_that_the_line_adds_to_an_array_belong_to_its_value() {
    let pattern = OneOrList(vec!["^git reset --hard".parse().unwrap()]);
    for (line, expected) in [
        ("a=(); a+=(reset --hard); git \"${a[@]}\"", Judgement::True),
        ("a=(reset); a+=(--hard); git \"${a[@]}\"", Judgement::True),
        ("declare -a a; a+=(reset --hard); git \"${a[@]}\"", Judgement::True),
        ("a=(status); a[0]=reset; git \"${a[@]}\" --hard", Judgement::True),
        ("a=(git reset); a+=(--hard \"$x\"); \"${a[@]}\"", Judgement::True),
        ("a=(reset \"--$x\"); git \"${a[@]}\"", Judgement::False),
        ("read -r how <<< '--hard'; git reset $how", Judgement::True),
        ("read -r how <<< \"$x\"; git reset $how", Judgement::False),
        // One of several values.
        ("a=(git reset); [[ -n $x ]] && a+=(--hard); \"${a[@]}\"", Judgement::Unknown),
        ("if x; then h=--hard; fi; a=(git reset $h); \"${a[@]}\"", Judgement::Unknown),
        ("a=(git); for w in reset --hard; do a+=(\"$w\"); done; \"${a[@]}\"", Judgement::Unknown),
        // Honest lines.
        ("c=(npm test); c+=(-v); \"${c[@]}\"", Judgement::False),
        ("c=(cargo test); [[ -n $CI ]] && c+=(--release); \"${c[@]}\"", Judgement::False),
        ("c=(pytest -q); if [ -n \"$V\" ]; then c+=(-v); fi; \"${c[@]}\"", Judgement::False),
    ] {
        assert_eq!(read(line).runs(&pattern), expected, "{line}");
    }
}

#[test]
fn the_input_of_a_script_is_no_program() {
    let pattern = OneOrList(vec!["^rm( |$)".parse().unwrap()]);
    for (program, code, expected) in [
        ("python3 tool.py --check", "import os\nos.system('rm v')", Judgement::False),
        ("python3 -m guard", "import os\nos.system('rm v')", Judgement::False),
        ("python3 -c 'import ast,sys; ast.parse(sys.stdin.read())'", "os.system('rm v')", Judgement::False),
        ("node cli.js", "require('child_process').execSync('rm v')", Judgement::False),
        ("node -e 'process.stdin.on(\"data\", d => console.log(d.length))'", "execSync('rm v')", Judgement::False),
        ("python3 -u", "import os\nos.system('rm v')", Judgement::True),
        ("python3 - a b", "import os\nos.system('rm v')", Judgement::True),
        ("python3 /dev/stdin", "import os\nos.system('rm v')", Judgement::True),
        ("python3 -W ignore", "import os\nos.system('rm v')", Judgement::True),
        ("python3 manage.py shell", "import os\nos.system('rm v')", Judgement::True),
        ("python3 -c 'import sys; exec(sys.stdin.read())'", "import os\nos.system('rm v')", Judgement::True),
        ("python3 -i a.py", "import os\nos.system('rm v')", Judgement::True),
        ("node --input-type=module", "execSync('rm v')", Judgement::True),
        ("node -r tsx -", "execSync('rm v')", Judgement::True),
        ("deno run -A -", "execSync('rm v')", Judgement::True),
        ("perl -MData::Dumper", "system('rm v');", Judgement::True),
    ] {
        let line = format!("{program} <<'E'\n{code}\nE");
        assert_eq!(read(&line).runs(&pattern), expected, "{line}");
    }
}

#[test]
fn comments_and_calls_that_run_nothing_are_no_commands() {
    let pattern = OneOrList(vec!["^(rm|git push)( |$)".parse().unwrap()]);
    for (program, code, expected) in [
        ("python3", "# os.system('rm v')\nprint(1)", Judgement::False),
        ("python3", "import shutil\nshutil.copy('a', 'b')  # was: subprocess.run(['rm', 'v'])", Judgement::False),
        ("python3", "import os\nprint('#'); os.system('rm v')", Judgement::True),
        ("node", "// execSync('rm v')\n/* execSync('rm v') */ console.log(1);", Judgement::False),
        ("node", "get('http://a'); execSync('rm v')", Judgement::True),
        ("node", "const a = /[/\"]\\//; execSync('rm v') // b", Judgement::True),
        ("perl", "# system('rm v');\nprint 1;", Judgement::False),
        ("node", "console.log(/^(\\w+)/.exec('rm v')[1])", Judgement::False),
        ("node", "const re = /^git (\\w+)/; console.log(re.exec('git push --force')[1])", Judgement::False),
        ("node", "require('child_process').exec('rm v')", Judgement::True),
        ("python3", "import sqlite3\nc.execute('insert into runs values (?)', ('rm v',))", Judgement::False),
        ("python3", "def run(cmd):\n    print('would run', cmd)\nrun('rm v')", Judgement::False),
        ("python3", "import re\ndef run(cmd):\n    print(cmd)\nrun('rm v')", Judgement::False),
        ("python3", "from tools import sh\ndef run(cmd):\n    sh(cmd)\nrun('rm v')", Judgement::True),
        ("python3", "import os\ndef run(cmd):\n    os.system(cmd)\nrun('rm v')", Judgement::True),
        ("node", "const exec = (s) => s.length; console.log(exec('rm v'))", Judgement::False),
        ("lua -", "os.execute('rm v')", Judgement::True),
        ("lua -", "repos.execute('rm v')", Judgement::False),
        ("node", "const { execSync: sh2 } = require('child_process');\nsh2('rm v')", Judgement::True),
        ("node", "const {execFileSync: git} = require('node:child_process')\ngit('git', ['push'])", Judgement::True),
        ("node", "import { execSync as x } from 'child_process'; x('rm v')", Judgement::True),
        ("node", "import { execSync as x } from 'child_process'; y.x('rm v')", Judgement::False),
        (
            "python3",
            "with patch('subprocess.run') as run:\n    run.assert_called_once_with(['rm', 'v'])",
            Judgement::False,
        ),
        ("node", "expect(exec).toHaveBeenCalledWith('rm', ['v'])", Judgement::False),
    ] {
        let line = format!("{program} <<'E'\n{code}\nE");
        assert_eq!(read(&line).runs(&pattern), expected, "{line}");
    }
}

#[test]
fn queries_of_a_database_are_no_commands() {
    let pattern = OneOrList(vec!["(?i)^create ".parse().unwrap()]);
    for (code, expected) in [
        ("db.exec('CREATE TABLE t (id int)')", Judgement::False),
        ("await db.exec(`\n  create table t (id int)`)", Judgement::False),
        ("shell.exec('create table')", Judgement::True),
        ("require('child_process').exec('create table')", Judgement::True),
    ] {
        let line = format!("npx tsx <<'E'\n{code}\nE");
        assert_eq!(read(&line).runs(&pattern), expected, "{code}");
    }
}

#[test]
fn what_is_unknown_about_calls_that_are_not_made_counts_for_nothing() {
    let function = "import subprocess\ndef run(cmd):\n    return subprocess.run(cmd)\ndef parse(s): return s\n";
    let method = "import subprocess\nclass Runner:\n    def run(self, args): return subprocess.run(args)\n";
    let thread = "import os\nclass T(Thread):\n    def run(self): os.system(self.cmd)\n";
    let called = format!("{function}run(input())\n");
    let found = format!("{function}globals()[input()](input())\n");
    let exports = "exports.sh = (c) => require('child_process').execSync(c);\nexports.add = (a, b) => a + b;\n";
    for (file, code, command, has_unknown) in [
        ("cli.py", function, "python3 -c 'from cli import parse; parse(1)'", false),
        ("cli.py", function, "python3 -m cli", false),
        ("cli.py", function, "python3 cli.py", false),
        ("tool/runner.py", method, "python3 -m tool.runner", false),
        ("lib.js", exports, "node -e 'console.log(require(\"./lib\").add(1, 2))'", false),
        ("lib.js", exports, "node lib.js", true),
        ("cli.py", called.as_str(), "python3 -m cli", true),
        ("cli.py", found.as_str(), "python3 -m cli", true),
        ("cli.py", thread, "python3 -m cli", true),
        ("cli.py", "import os\nos.system(input())\n", "python3 -c 'import cli'", true),
        ("test_a.py", "import os\ndef test_a(c):\n    os.system(c)\n", "python3 -m pytest test_a.py", true),
    ] {
        let line = format!("cat > {file} <<'E'\n{code}E\n{command}");
        assert_eq!(read(&line).has_unknown, has_unknown, "{line}");
    }
    let pattern = OneOrList(vec!["^rm( |$)".parse().unwrap()]);
    let line = "cat > a.py <<'E'\nimport os\ndef go():\n    os.system('rm v')\nE\npython3 -c 'import a; a.go()'";
    assert_eq!(read(line).runs(&pattern), Judgement::True);
}

#[test]
fn arguments_that_a_program_shows_are_read() {
    let pattern = OneOrList(vec!["^git (reset --hard|push --force)".parse().unwrap()]);
    for (code, expected) in [
        ("def go(*args):\n    subprocess.run(['git', *args])\ngo('fetch')\ngo('reset', '--hard')", Judgement::True),
        ("def go(*args):\n    subprocess.run(['git'] + list(args))\ngo('reset', '--hard')", Judgement::True),
        ("c = ['git', 'push']\nc.append('--force')\nsubprocess.run(c)", Judgement::True),
        ("c = ['git']\nc += ['push', '--force']\nsubprocess.run(c)", Judgement::True),
        ("c = ['git']\nc.extend(['push', '--force'])\nsubprocess.run(c)", Judgement::True),
        ("c = 'git push'\nc += ' --force'\nsubprocess.run(c, shell=True)", Judgement::True),
        ("a = ['reset', '--hard']\nsubprocess.run(['git', *a])", Judgement::True),
        ("for a in (['fetch'], ['reset', '--hard']):\n    subprocess.run(['git'] + a)", Judgement::True),
        ("for a in ('fetch', 'reset --hard'):\n    subprocess.run(f'git {a}', shell=True)", Judgement::True),
        ("for a in ('fetch', 'reset --hard'):\n    subprocess.run('git %s' % a, shell=True)", Judgement::True),
        ("subprocess.run('git {} {}'.format('reset', '--hard'), shell=True)", Judgement::True),
        ("os.execvp('git', ['git', 'reset', '--hard'])", Judgement::True),
        ("os.execlp('git', 'git', 'push', '--force')", Judgement::True),
        ("a = ['git', 'reset', '--hard']\nos.execvp(a[0], a)", Judgement::True),
        ("subprocess.run('''git \\\n  reset --hard''', shell=True)", Judgement::True),
        ("c = ['git', 'push']\nif f:\n    c.append('--force')\nsubprocess.run(c)", Judgement::Unknown),
        ("c = ['git', 'push']\nsubprocess.run(c)\nc.append('--force')", Judgement::False),
        ("c = ['git', 'push']\nif v:\n    c.append('-v')\nsubprocess.run(c)", Judgement::False),
        ("def go(*args):\n    subprocess.run(['git', *args])\ngo('fetch')", Judgement::False),
        ("os.execvp('git', ['git', 'status'])", Judgement::False),
    ] {
        let line = format!("python3 - <<'E'\nimport os, subprocess\n{code}\nE");
        assert_eq!(read(&line).runs(&pattern), expected, "{code}");
    }
    for (code, expected) in [
        ("const git = (...a) => execFileSync('git', a); git('reset', '--hard')", Judgement::True),
        ("const git = (a) => execFileSync('git', a); git(['reset', '--hard'])", Judgement::True),
        ("function git(a) { return spawnSync('git', a) } git(['push', '--force'])", Judgement::True),
        ("const a = ['push', '--force']; spawnSync('git', a)", Judgement::True),
        ("const a = []; a.push('push', '--force'); spawnSync('git', a)", Judgement::True),
        ("const git = (a) => execSync(`git ${a}`); git('reset --hard')", Judgement::True),
        ("const git = (a) => execSync('git ' + a); git('reset --hard')", Judgement::True),
        ("for (const a of ['fetch', '--force']) spawnSync('git', ['push', a])", Judgement::True),
        ("execSync(`git \\\n  push --force`)", Judgement::True),
        ("import { $ } from 'zx';\nawait $`git push --force`;", Judgement::True),
        ("new Deno.Command('git', { args: ['push', '--force'] }).outputSync()", Judgement::True),
        ("const git = (...a) => execFileSync('git', a); git('status')", Judgement::False),
        ("import { $ } from 'zx';\nawait $`git push ${f}`;", Judgement::False),
    ] {
        let line = format!("node - <<'E'\n{code}\nE");
        assert_eq!(read(&line).runs(&pattern), expected, "{code}");
    }
}

#[test]
fn a_program_that_the_line_writes_is_read_whatever_runs_it() {
    let pattern = OneOrList(vec!["^rm( |$)".parse().unwrap()]);
    for line in [
        "echo \"execSync('rm v')\" > a.ts; npx -y tsx a.ts",
        "echo \"execSync('rm v')\" > a.ts; pnpm exec tsx a.ts",
        "echo \"execSync('rm v')\" > a.ts; ts-node a.ts",
        "echo \"execSync('rm v')\" > a.ts; npx vite-node a.ts",
        "echo \"execSync('rm v')\" > a.js; node ./a",
        "echo \"execSync('rm v')\" > a.js; node -e \"require('./a')\"",
        "echo \"import os; os.system('rm v')\" > a.py; python3 -m a",
        "echo \"import os; os.system('rm v')\" > a.py; python3 -c 'import a'",
        "echo 'import os, sys; os.system(sys.argv[1])' > a.py; python3 a.py 'rm v'",
        "npx tsx -e 'execSync(\"rm v\")'",
    ] {
        assert_eq!(read(line).runs(&pattern), Judgement::True, "{line}");
    }
    assert_eq!(read("echo \"execSync('rm v')\" > a.js; node b").runs(&pattern), Judgement::False);
}

#[test]
#[ignore = "slow: reads very long commands"]
fn nested_commands_have_a_bound() {
    let empty = "'' ".repeat(1000);
    let loops: Vec<String> = (0..3000).map(|number| format!("for v{number} in 1 2; do ")).collect();
    let variables: Vec<String> = (0..3000).map(|number| format!("$v{number}")).collect();
    let many = format!("for f in {}; do rm $f; done", "a ".repeat(2_000));
    assert!(read(&many).has_unknown);
    for line in [
        "$(".repeat(100_000),
        "sudo ".repeat(10_000),
        "`\\`".repeat(50_000),
        "\"$(\"".repeat(50_000),
        format!("X=a;{}$X", "X=$X$X;".repeat(60)),
        format!("{}{{", "${a".repeat(50_000)),
        format!("alias a={};{}", "b".repeat(50_000), "a;".repeat(10_000)),
        format!("[[ {}", "a || b ".repeat(50_000)),
        format!("echo {} > a;{}", "b".repeat(1000), "cat a a a >> a;".repeat(50)),
        format!("echo {} > a;{}", "b".repeat(1000), "tee -a a a a < a;".repeat(50)),
        "(".repeat(100_000),
        format!("for a in {empty}; do for b in {empty}; do for c in {empty}; do $a$b$c; done; done; done"),
        format!("for a in {}; do echo $a {}; done", "b ".repeat(1000), "c".repeat(1 << 20)),
        format!("{}echo {}", loops.concat(), variables.concat()),
        format!("node -e 'run({})'", "\"run\",".repeat(2000)),
    ] {
        assert!(read(&line).has_unknown);
    }
    // The time for joined texts does not grow with the square of their number.
    let joined = read(&format!("python3 -c \"import os; os.system('a'{})\"", "+'a'".repeat(40_000)));
    assert!(joined.commands.contains(&"a".repeat(40_001)));
    let many = read(&"a;".repeat(100_000));
    assert!(many.has_unknown && many.commands.len() <= super::reader::MAX_COMMANDS);
}

proptest::proptest! {
    #[test]
    fn any_text_is_read(line in "[a-c $(){}<>|&;'\"`\\\\\n=#!*-]{0,60}") {
        read(&line);
    }
}
