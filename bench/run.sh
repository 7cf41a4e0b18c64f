#!/usr/bin/env bash
# Measures what docs/results/performance.md tells, each benchmark in a process of its own, and beside it the same work in PyTorch
# and numpy where PEERS names the folder of bench.py and export.py. THREADS, for networks, is that of the engine and of PyTorch: with 1, on a
# machine that others use, the processor times say more than images a second do.
#
#   NOETHER_TESTDATA=/data PEERS=/peers ROUNDS=3 bench/run.sh [taps|networks|ei|seis|similarity|invert|stir|report|firing|video|million|train|probe ...]
set -euo pipefail
cd "$(dirname "$0")/.."
: "${NOETHER_TESTDATA:?set it to the folder of test data}"
rounds=${ROUNDS:-3}
python=${PYTHON:-/usr/bin/python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go test -c -o "$work/study.test" ./study
go test -c -o "$work/model.test" ./model
go test -c -o "$work/similarity.test" ./measure/similarity
go test -c -o "$work/invert.test" ./invert
go test -c -o "$work/stir.test" ./measure/stir
go test -c -o "$work/train.test" ./train
go test -c -o "$work/probe.test" ./measure/probe
go test -c -o "$work/report.test" ./report
go test -c -o "$work/firing.test" ./measure/firing
go test -c -o "$work/video.test" ./dataset/video

ours() { # FOLDER BINARY BENCHMARK
	(cd "$1" && "$work/$2" -test.run '^$' -test.bench "$3" -test.benchtime "${BENCHTIME:-1x}") | grep -E '^Benchmark.*/op' | tr -s ' \t' ' '
}
peer() {
	[ -z "${PEERS:-}" ] || (cd "$PEERS" && echo "peer $*: $("$python" bench.py "$@")")
}

nproc | sed 's/^/cores: /'
date -u +'%Y-%m-%d'
for what in "${@:-taps ei seis similarity invert stir report firing video}"; do
	for w in $what; do
		case $w in
		taps)
			if [ -z "${NOETHER_BENCH_MODEL:-}" ] && [ -n "${PEERS:-}" ]; then
				(cd "$PEERS" && "$python" export.py "$work" resnet18:224 >/dev/null)
				export NOETHER_BENCH_MODEL=$work/resnet18/model.onnx
			fi
			for _ in $(seq "$rounds"); do
				BENCHTIME=10x ours model model.test 'Engine|Bare|TapsAll|TapsRelu'
				peer taps resnet18 224 8 all
				peer taps resnet18 224 8 relu
			done
			;;
		networks) # what is read besides every tensor: layers of ours, and PyTorch's class of modules that makes them
			: "${PEERS:?it has the networks}"
			while read -r -u 3 net size batch class layers; do
				[ -e "$work/$net" ] || (cd "$PEERS" && "$python" export.py "$work" "$net:$size" >/dev/null)
				for _ in $(seq "$rounds"); do
					for kept in all "$class"; do
						bench=TapsAll
						[ "$kept" = all ] || bench=Taps
						echo "$net $kept: $(NOETHER_BENCH_MODEL=$work/$net/model.onnx NOETHER_BENCH_SIZE=$size NOETHER_BENCH_BATCH=$batch NOETHER_BENCH_LAYERS=$layers \
							NOETHER_BENCH_THREADS=${THREADS:-2} BENCHTIME=7x ours model model.test "$bench\$")"
						echo "$net $kept: peer $("$python" bench/networks.py "$PEERS" "$net" "$size" "$batch" "$kept" "${THREADS:-2}")"
					done
				done
			done 3<bench/networks.txt
			;;
		ei)
			for _ in $(seq "$rounds"); do
				ours study study.test EffectiveInvariance
				peer ei cifar_resnet20 "$NOETHER_TESTDATA/cifar10/test_batch.bin"
			done
			;;
		seis)
			for k in scores null null-and-interval scores-1000 scores-10000; do
				ours study study.test "SEIS/$k\$"
			done
			peer seis cifar_resnet20 "$NOETHER_TESTDATA/cifar10/test_batch.bin" 2000
			;;
		similarity)
			for size in 2000x512 10000x512 2000x2048 500x4096; do
				arrays=$work/arrays$size
				"$python" bench/arrays.py "$arrays" "${size%x*}" "${size#*x}"
				for _ in $(seq "$rounds"); do
					NOETHER_BENCH_ARRAYS=$arrays BENCHTIME=3x ours measure/similarity similarity.test Value
					[ -z "${PEERS:-}" ] || echo "peer similarity $size: $("$python" "$PEERS/similarity.py" "$arrays/X.npy" "$arrays/Y.npy" | tr -d '\n')"
				done
			done
			;;
		invert)
			if [ -n "${PEERS:-}" ]; then
				(cd "$PEERS" && "$python" export.py "$work/invert" resnet18:224 cifar_resnet18:32 >/dev/null)
				for _ in $(seq "$rounds"); do
					for row in "resnet18 224 8" "cifar_resnet18 32 32"; do
						read -r net size batch <<<"$row"
						NOETHER_BENCH_MODEL=$work/invert/$net/model.onnx NOETHER_BENCH_SIZE=$size NOETHER_BENCH_BATCH=$batch BENCHTIME=10x \
							ours invert invert.test 'Step$'
						peer invert "$net" "$size" "$batch"
					done
				done
			else
				BENCHTIME=40x ours invert invert.test 'Step$'
			fi
			;;
		report)
			BENCHTIME=5x ours report report.test 'FirstView$'
			;;
		probe)
			for _ in $(seq "$rounds"); do
				BENCHTIME=3x ours train train.test 'Probe/'
				peer probe 768 512,256 2048
				ours measure/probe probe.test 'Twenty'
			done
			;;
		train)
			for _ in $(seq "$rounds"); do
				BENCHTIME=5x ours train train.test 'SGD/cifar_resnet18'
				peer train cifar_resnet18 32 32
			done
			;;
		stir)
			ours measure/stir stir.test 'STIR$'
			NOETHER_BENCH_OPTIMISER=adam ours measure/stir stir.test 'STIR$'
			models=$NOETHER_TESTDATA/models
			[ -z "${PEERS:-}" ] || echo "peer stir: $("$python" bench/stir.py "$PEERS" "$NOETHER_TESTDATA/cifar10/test_batch.bin" "$models/resnet20-cifar10.onnx" "$models/resnet32-cifar10.onnx")"
			;;
		firing)
			ours measure/firing firing.test 'Gratings$'
			ours measure/firing firing.test 'Thresholds$'
			for n in all-64MiB-200 all-64MiB-800 all-64MiB-3200 all-16MiB-200 all-16MiB-800 all-16MiB-3200 last-8MiB-800 last-8MiB-3200 last-8MiB-10000 first-2MiB-800 first-2MiB-3200 first-2MiB-10000; do # those left out make many passes of all layers
				ours measure/firing firing.test "Inputs/^$n\$"
			done
			;;
		million) # ten minutes and more each
			for k in 1000-exact 10000-exact 100000-sketch-1280; do
				ours measure/firing firing.test "Million/^$k"
			done
			;;
		video)
			ours dataset/video video.test .
			;;
		esac
	done
done
