//! The cost of the pure parts: `cargo bench -p lockkeeper-bench`.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use lockkeeper_core::simulation::lease_after;
use lockkeeper_core::{BootInstant, NodeName, Rule};

/// A listing of `length` contenders of one kind, in no order, as a server gives it.
fn listing(label: &str, length: u64) -> Vec<String> {
    let name =
        |number: u64| format!("_c_{:036x}-{label}{number:010}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut names: Vec<String> = (0..length).map(name).collect();
    // By the random part that is in front.
    names.sort();
    names
}

fn names(criterion: &mut Criterion) {
    let name = "_c_01234567-89ab-cdef-0123-456789abcdef-lock-0000012345";
    criterion.bench_function("name/parse", |bencher| bencher.iter(|| NodeName::parse(black_box(name))));
    let mut group = criterion.benchmark_group("name/order");
    for length in [10, 1_000, 10_000] {
        let names = listing("lock-", length);
        group.bench_with_input(BenchmarkId::from_parameter(length), &names, |bencher, names| {
            bencher.iter(|| {
                let mut line: Vec<NodeName> = names.iter().filter_map(|name| NodeName::parse(name)).collect();
                line.sort_by_key(NodeName::sequence);
                line
            });
        });
    }
}

fn predecessors(criterion: &mut Criterion) {
    for (label, rule) in [("lock-", Rule::MUTEX), ("__READ__", Rule::READER), ("__WRIT__", Rule::WRITER)] {
        let mut group = criterion.benchmark_group(format!("line/{label}"));
        for length in [10, 1_000, 10_000] {
            let names = listing(label, length);
            let Some(last) = names.iter().max_by_key(|name| name.get(name.len().saturating_sub(10)..)) else {
                continue;
            };
            group.bench_function(BenchmarkId::from_parameter(length), |bencher| {
                bencher.iter(|| rule.lower_in(black_box(&names), black_box(last)));
            });
        }
    }
}

fn lease(criterion: &mut Criterion) {
    let opened = BootInstant::now();
    criterion.bench_function("lease/1000 confirmations", |bencher| {
        bencher.iter(|| lease_after(black_box(opened), 1_000));
    });
}

criterion_group!(pure, names, predecessors, lease);
criterion_main!(pure);
