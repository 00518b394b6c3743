//! Command lines and the commands that they run.

use super::CommandLine;

#[test]
fn the_commands_of_a_line_are_in_the_normal_form() {
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
            &["cat <<<It's␣(rm␣-rf␣x␤", "git commit -m $(cat␣<<'EOF'␤It's␣(rm␣-rf␣x␤EOF)", "b"],
        ),
        ("cat <<A <<-B; c\n1\nA\n\t2\n\tB\nd", &["cat <<<1␤ <<<2␤", "c", "d"]),
        ("if a; then b; elif ! c; then d; else e; fi >f", &["a", "b", "c", "d", "e"]),
        ("time { a; }; time -p b", &["a", "time -p b", "b"]),
        ("for x in rm $(y); do a $x; done", &["y", "a $x"]),
        ("while read l; do a; done < f", &["read l", "a"]),
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
        // Programs that run others.
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
        ("python3 -c \"import os; os.system('rm a')\"", &["python3 -c import␣os;␣os.system('rm␣a')", "rm a"]),
        ("node -e 'spawn(\"rm\", [\"-rf\", \"a\"])'", &["node -e spawn(\"rm\",␣[\"-rf\",␣\"a\"])", "rm -rf a"]),
        ("command -v rm", &["command -v rm"]),
        ("git rebase -x 'rm a' main", &["git rebase -x rm␣a main", "rm a"]),
    ] {
        let read = CommandLine::read(line);
        assert_eq!(read.commands, commands, "{line}");
        assert!(!read.has_unknown, "{line}");
    }
}

#[test]
fn a_program_without_a_shown_name_is_unknown() {
    for (line, has_unknown) in [
        ("$X a", true),
        ("\"${CC:-gcc}\" -c a.c", true),
        ("bash -c \"$X\"", true),
        ("eval $X", true),
        ("X=$(mktemp); $X", true),
        ("for x in a b; do $x; done", true),
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
    ] {
        assert_eq!(CommandLine::read(line).has_unknown, has_unknown, "{line}");
    }
}

#[test]
fn nested_commands_have_a_bound() {
    for line in ["$(".repeat(100_000), "sudo ".repeat(10_000), "`\\`".repeat(50_000), "\"$(\"".repeat(50_000)] {
        assert!(CommandLine::read(&line).has_unknown);
    }
    let many = CommandLine::read(&"a;".repeat(100_000));
    assert!(many.has_unknown && many.commands.len() <= super::MOST);
}

proptest::proptest! {
    #[test]
    fn any_text_is_read(line in "[a-c $(){}<>|&;'\"`\\\\\n=#!*-]{0,60}") {
        CommandLine::read(&line);
    }
}
