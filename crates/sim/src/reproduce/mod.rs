pub mod measure;
#[cfg(test)]
mod probe {
    use super::measure::*;
    use crate::machine::*;
    #[test]
    fn probe() {
        let m = Parameters::PAPER;
        let us = |o: OneWay| o.span.as_us_f64();
        for way in [Way::Raw, Way::Tagged] {
            let o = ping_pong(&m, &Shape::short(way), MESSAGES).unwrap();
            println!(
                "{way:?} {} {} {:?} cpu {}",
                us(o),
                o.round_trip,
                o.ledger,
                o.processors
            );
        }
        for (n, md) in [
            (0, 0),
            (4, 0),
            (28, 0),
            (32, 0),
            (256, 0),
            (257, 0),
            (512, 0),
            (513, 0),
            (768, 0),
            (769, 0),
            (32, 4),
            (32, 60),
            (60, 0),
            (196, 60),
            (197, 60),
        ] {
            let s = Shape {
                metadata_bytes: md,
                ..Shape::datagram(256, n)
            };
            println!("256: {n} {md} {}", us(ping_pong(&m, &s, 4).unwrap()));
        }
        for k in 1..=5 {
            println!(
                "4096: {k} {}",
                us(ping_pong(&m, &Shape::datagram(4096, 4096 * k), 4).unwrap())
            );
        }
        for p in [256, 512, 1024, 2048, 4096] {
            let n = 40960;
            let a = ping_pong(&m, &Shape::datagram(p, n), 4).unwrap();
            let b = loopback(&m, &Shape::datagram(p, n), 4).unwrap();
            println!("{p}: {:.2} {:.2} MB/s", n as f64 / us(a), n as f64 / us(b));
        }
        println!(
            "loop4 {}",
            us(loopback(&m, &Shape::datagram(256, 4), 10000).unwrap())
        );
        println!(
            "asleep {}",
            us(ping_pong_asleep(&m, &Shape::datagram(256, 0), 10000).unwrap())
        );
        println!(
            "hw {}",
            us(ping_pong(&Parameters::HARDWARE, &Shape::short(Way::Raw), 100).unwrap())
        );
        println!(
            "{:?}",
            flow(&m, &Shape::datagram(4096, 4096), 1000, true).unwrap()
        );
        println!(
            "{:?}",
            flow(&m, &Shape::datagram(256, 64), 1000, false).unwrap()
        );
    }
}
