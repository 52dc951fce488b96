use super::*;

#[test]
fn no_word_of_a_command_can_be_two_or_another_command() {
    let listener =
        |control: &str| Listener { host: 0, port: 1, protocol: Protocol::Tcp, control: control.into() };
    assert_eq!(listen_line(&listener("cubic")).unwrap(), "listen 0 1 tcp cubic");
    for bad in ["", "a b", "a\nready", "é", &"x".repeat(129)] {
        assert!(listen_line(&listener(bad)).is_err(), "{bad}");
        assert!(set_line(0, bad, "1").is_err(), "{bad}");
    }
    for path in ["/etc/x", "net/../../x", "net//x"] {
        assert!(set_line(0, path, "1").is_err(), "{path}");
    }
    assert_eq!(
        set_line(3, "net/ipv4/tcp_rmem", "4096 8192 9000").unwrap(),
        "set 3 net/ipv4/tcp_rmem 4096 8192 9000"
    );
    assert!(set_line(0, "net/ipv4/tcp_sack", "1\nready").is_err());
}

#[test]
fn what_is_no_file_of_the_kernel_has_a_line_of_its_own() {
    assert_eq!(set_line(3, "route/initcwnd", "20").unwrap(), "route 3 initcwnd 20");
    assert_eq!(set_line(3, "mptcp/subflows", "4").unwrap(), "mptcp 3 4");
    let parameter = |path| parameter(path, "5").map(Result::unwrap);
    assert_eq!(parameter("module/tcp_dctcp/dctcp_shift_g").as_deref(), Some("tcp_dctcp.dctcp_shift_g=5"));
    assert_eq!(parameter("net/ipv4/tcp_sack"), None);
}

#[test]
fn the_words_of_a_program_are_told_as_they_are() {
    let program = Program::new(7, 3, "echo 'a b' \"\"").unwrap();
    assert_eq!(program_line(&program).unwrap(), "program 7 3 1048576 /tmp\0echo\0a b\0\0");
    let many = Program { words: vec!["x".into(); 513], ..program.clone() };
    let long = Program { words: vec!["x".repeat(4_096)], ..program.clone() };
    let zero = Program { words: vec!["a\0b".into()], ..program.clone() };
    let nowhere = Program { directory: "here".into(), ..program.clone() };
    let nothing = Program { words: vec![], ..program };
    for bad in [many, long, zero, nowhere, nothing] {
        assert!(matches!(program_line(&bad), Err(Error::Untellable { .. })), "{bad:?}");
    }
}
