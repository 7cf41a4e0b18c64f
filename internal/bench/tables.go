//go:build unix

package main

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/noether-ml/noether/internal/turbojpeg"
)

//go:embed networks.txt
var networkList string

const (
	pytorch = "PyTorch and numpy"
	noether = "Noether"
)

// tables are all tables, in the order in which they are measured. A ratio tells how many times as
// fast as its peer Noether is. In arguments, $DATA is the folder of test data, $PEERS that of the
// peers, and $WORK a temporary folder.
var tables = []table{
	{name: "tasks", columns: []string{"work", "rounds", pytorch, noether, "ratio"}, rows: []row{
		rate("forward, ResNet-18 at 224, batch 8, every tensor read", "images/s",
			peer("bench.py", "taps", "resnet18", "224", "8", "all"), golang("internal/model", "LayersAll$", 10, "NOETHER_BENCH_MODEL=model:resnet18:224"), "peak-MiB"),
		rate("forward, ResNet-18 at 224, batch 8, its 17 ReLUs read", "images/s",
			peer("bench.py", "taps", "resnet18", "224", "8", "relu"), golang("internal/model", "LayersRelu$", 10, "NOETHER_BENCH_MODEL=model:resnet18:224"), "peak-MiB"),
		rate("effective invariance, ResNet-20, CIFAR-10 test set, three rotations", "images/s",
			peer("bench.py", "ei", "cifar_resnet20", "$DATA/cifar10/test_batch.bin"), golang("internal/study/run", "EffectiveInvariance$", 1), "MiB-peak"),
		seis("SEIS at the 19 convolutions of a ResNet-20, 2,000 CIFAR-10 pairs, the two scores", "scores", true),
		seis("SEIS at the 19 convolutions of a ResNet-20, 2,000 CIFAR-10 pairs, with the null", "null", false),
		seis("SEIS at the 19 convolutions of a ResNet-20, 2,000 CIFAR-10 pairs, with null and interval", "null-and-interval", false),
		rate("one step of an inversion, ResNet-18 at 224, batch 8", "images/s", peer("bench.py", "invert", "resnet18", "224", "8"),
			golang("internal/invert", "Step$", 10, "NOETHER_BENCH_MODEL=model:resnet18:224", "NOETHER_BENCH_SIZE=224", "NOETHER_BENCH_BATCH=8"), ""),
		rate("one step of an inversion, CIFAR ResNet-18, batch 32", "images/s", peer("bench.py", "invert", "cifar_resnet18", "32", "32"),
			golang("internal/invert", "Step$", 10, "NOETHER_BENCH_MODEL=model:cifar_resnet18:32", "NOETHER_BENCH_SIZE=32", "NOETHER_BENCH_BATCH=32"), ""),
		rate("one step of SGD, CIFAR ResNet-18, batch 32", "images/s",
			peer("bench.py", "train", "cifar_resnet18", "32", "32"), golang("internal/train", "SGD/cifar_resnet18$", 5), ""),
		rate("one epoch of a 768-512-256-1 probe, batch 32, eight steps per call of ONNX Runtime", "samples/s",
			peer("bench.py", "probe", "768", "512,256", "2048"), golang("internal/train", "Probe/spin=false/stepsPerRun=8$", 3), ""),
	}},
	{name: "first-run", columns: []string{"network", "images", "time predicted by the dry run", "time", "processor time", "peak memory"}, rows: firstRuns()},
	{name: "decoding", columns: []string{"per second of processor time", "rounds", "PIL and torchvision", noether, "ratio"}, rows: []row{
		photographs("2,000 photographs (200, ten times each) decoded, resized to 256 and cropped to 224", ""),
		photographs("the same without libjpeg-turbo", "", turbojpeg.Env+"=none"),
		photographs("the same as PNG", "png"),
		photographs("the same as WebP", "webp"),
		loader("the JPEG files read by two workers (a DataLoader of PyTorch), per second of the clock"),
	}},
	{name: "studies", columns: []string{studyColumn, "rounds", engineTime, decodingTime, otherTime, share}, rows: studyTimes()},
	{name: "shards", columns: []string{shardColumn, "rounds", passTime, openingTime, scoringTime}, rows: shards()},
	{name: "commands", columns: []string{commandColumn, "time"}, rows: commands()},
	{name: "seis-size", columns: []string{"SEIS at the 19 convolutions of a ResNet-20", "time"}, rows: []row{
		size("1,000 pairs, the two scores", "scores-1000"), size("10,000 pairs, the two scores", "scores-10000"),
	}},
	{name: "similarity", columns: []string{"arrays of float32", "statistic", "numpy", noether}, rows: similarities()},
	{name: "grid", columns: []string{gridWork, "numpy, processor time", "Noether, processor time", "ratio", "numpy, time", "Noether, time", "ratio of times"}, slow: true, rows: grids()},
	{name: "grid-memory", columns: []string{gridMemory, "1000 samples", "5000 samples", "20000 samples"}, slow: true, rows: gridMemories()},
	{name: "networks-clock", slow: true, rows: networks("per_second", "images/s", "images/s", "2"), columns: networkColumns},
	{name: "networks-processor", slow: true, rows: networks("cpu_ms_per_image", "cpu-ms/image", "ms", "1"), columns: networkColumns},
	{name: "networks-memory", slow: true, rows: networkMemories(), columns: []string{"network", valuesRead + ": PyTorch", valuesRead + ": Noether",
		"batch 1: PyTorch", "batch 1: Noether", "batch 8: PyTorch", "batch 8: Noether"}},
	{name: "distances-memory", slow: true, rows: distanceMemories(), columns: []string{"network", "PyTorch, batch 1", "PyTorch, batch 8", noether}},
	{name: "firing-memory", columns: []string{"units", "images", "processor time", "peak memory"}, rows: unitMemory()},
	// The last task also computes the scores of its model. Another task only saves sums. Operations
	// are system calls on paths in the run folder.
	{name: "submission", slow: true, rows: submissions(), columns: []string{"submission", "last task", "operations of the last task", "operations of another task",
		"`status`", "operations of `status`", "merge", "operations of the merge"}},
	{name: "cells", slow: true, rows: manyCells(), columns: []string{cellsColumn, "time", "processor time"}},
	{name: "gpu", slow: true, rows: gpus(), columns: []string{gpuWork, "rounds", gpuPeer, gpuNoether, "ratio", gpuCPU}},
	{name: "report", columns: []string{"page", "size", "processor time of the main thread", "wall-clock time"}, rows: []row{
		page("107,856 scores", "scores"),
		page("107,856 scores, 1,440 histograms of units, 5,000 tuning curves, 40 contact sheets", "everything"),
	}},
}

// rate returns a row that compares the rates of a peer and of Noether. The peer has the metrics
// per_second and peak_mib. Noether has the rate as the metric named by metric, and the peak memory
// as that named by memory ("": the memory of neither is measured).
func rate(work, metric string, ofPeer, ofNoether *source, memory string) row {
	peakOfPeer := ""
	if memory != "" {
		peakOfPeer = "peak_mib"
	}
	return row{text: map[string]string{"work": work}, ratios: []string{"ratio"}, cells: []cell{
		{column: pytorch, from: ofPeer, metric: "per_second", unit: metric, memory: peakOfPeer},
		{column: noether, from: ofNoether, metric: metric, unit: metric, memory: memory},
	}}
}

// seis returns a row on the measure SEIS. If compared is set it has a cell of the peer in PyTorch,
// which takes minutes and so is measured once.
func seis(work, benchmark string, compared bool) row {
	r := row{text: map[string]string{"work": work}}
	if compared {
		r.ratios = []string{"ratio"}
		r.cells = append(r.cells, cell{column: pytorch, from: peer("bench.py", "seis", "cifar_resnet20", "$DATA/cifar10/test_batch.bin", "2000"),
			metric: "seconds", unit: "s", memory: "peak_mib", once: true})
	}
	r.cells = append(r.cells, cell{column: noether, from: golang("internal/study/run", "SEIS/"+benchmark+"$", 1), metric: "s/op", unit: "s", memory: "MiB-peak"})
	return r
}

// photographs returns a row on the decoding of photographs. PIL first converts them to format,
// unless it is "". environment holds variables for Noether, as NAME=VALUE.
func photographs(text, format string, environment ...string) row {
	dir, setting, convert := "$DATA/imagenet-samples", "NOETHER_BENCH_PHOTOS=", func(s *source) *source { return s }
	if format != "" {
		dir = "$WORK/photos-" + format
		setting += "dir:" + dir
		convert = func(s *source) *source {
			return prepared("photos-"+format, s, "photos.py", "$DATA/imagenet-samples", "--convert", format, dir)
		}
	}
	return row{text: map[string]string{"per second of processor time": text}, ratios: []string{"ratio"}, cells: []cell{
		{column: "PIL and torchvision", from: convert(peer("internal/bench/photos.py", dir)), metric: "per_second", unit: "images"},
		{column: noether, from: convert(golang("dataset", "Photographs$", 10, append(environment, setting)...)), metric: "images/s", unit: "images"},
	}}
}

// loader returns a row on reading files by several workers, per second of wall-clock time.
func loader(text string) row {
	return row{text: map[string]string{"per second of processor time": text}, ratios: []string{"ratio"}, cells: []cell{
		{column: "PIL and torchvision", from: peer("internal/bench/photos.py", "$DATA/imagenet-samples", "--loader"), metric: "per_second", unit: "images/s"},
		{column: noether, from: golang("dataset", "Files$", 3), metric: "images/s", unit: "images/s"},
	}}
}

// size returns a row on the time of SEIS for a number of pairs.
func size(text, benchmark string) row {
	return row{text: map[string]string{"SEIS at the 19 convolutions of a ResNet-20": text}, cells: []cell{
		{column: "time", from: golang("internal/study/run", "SEIS/"+benchmark+"$", 1), metric: "s/op", unit: "s", memory: "MiB-peak", once: true},
	}}
}

// firstRuns returns a row for each of six networks of different families.
func firstRuns() []row {
	var rows []row
	for _, net := range []string{"squeezenet1_1", "resnet18", "mobilenet_v2", "resnet50", "convnext_tiny", "vit_b_16"} {
		from := firstRun(net)
		rows = append(rows, row{text: map[string]string{"network": net}, cells: []cell{
			{column: "time", from: from, metric: "s", unit: "s"},
			{column: "images", from: from, metric: "images"},
			{column: "time predicted by the dry run", from: from, metric: "stated", unit: "s"},
			{column: "processor time", from: from, metric: "cpu-s", unit: "s"},
			{column: "peak memory", from: from, metric: "MiB-peak", unit: "MiB"},
		}})
	}
	return rows
}

// similarities returns a row for each size of arrays and each statistic.
func similarities() []row {
	var rows []row
	for _, s := range [][2]int{{2000, 512}, {10000, 512}, {2000, 2048}, {500, 4096}} {
		n, p := s[0], s[1]
		dir := fmt.Sprintf("$WORK/arrays-%dx%d", n, p)
		for _, statistic := range []string{"linear-cka", "debiased-cka", "svcca", "pwcca"} {
			rows = append(rows, row{text: map[string]string{"arrays of float32": fmt.Sprintf("%d x %d", n, p), "statistic": "`" + statistic + "`"}, cells: []cell{
				{column: "numpy", from: arrays(n, p, peer("similarity.py", dir+"/X.npy", dir+"/Y.npy")), metric: statistic, unit: "s"},
				{column: noether, from: arrays(n, p, golang("measure/similarity", "Value/^"+statistic+"$", 3, "NOETHER_BENCH_ARRAYS=dir:"+dir)), metric: "s/op", unit: "s"},
			}})
		}
	}
	return rows
}

const gridWork = "all pairs of layers of two networks"

// grid returns a benchmark of all pairs of layers of two networks. size is "SAMPLES LAYERS WIDTH",
// where the width is the number of values of a layer. With the width 0 the layers are the pooled
// maps of a ResNet-56: 16, 32 and 64 channels.
func grid(statistics, size, threads string) *source {
	return golang("measure/similarity", "Grid/^"+statistics+"$", 1, "NOETHER_BENCH_GRID="+size, "GOMAXPROCS="+threads, "OPENBLAS_NUM_THREADS="+threads)
}

// grids returns rows for all pairs of layers of two networks. The peer of a row computes the same
// statistics, but only for every step-th layer. statistics names a case of the Go benchmark:
// "moments" are the five statistics in a row's text, which need only means and covariances.
func grids() []row {
	const pooled, full = "5000 50 0", "1000 10 4096"
	var rows []row
	for _, r := range []struct{ text, size, statistics, peer, step, threads string }{
		{"50 x 50 pooled maps, 5,000 samples: `minibatch-cka`, as torch_cka", pooled, "minibatch-cka", "torch_cka", "5", "1"},
		{"the same: `linear-cka`; numpy as torch_cka", pooled, "linear-cka", "torch_cka", "5", "1"},
		{"the same: `linear-cka`, as ReSi", pooled, "linear-cka", "resi", "5", "1"},
		{"the same, on two threads each", pooled, "linear-cka", "resi", "5", "2"},
		{"the same, on one thread: `linear-cka`, `cca`, `svcca`, `procrustes`, `linear-regression`, as ReSi", pooled, "moments", "resi-all", "5", "1"},
		{"the same, with intervals and nulls", pooled, "moments-with-intervals", "", "", "1"},
		{"10 x 10 layers of 4,096 values, 1,000 samples: `linear-cka`, as ReSi", full, "linear-cka", "resi", "2", "1"},
	} {
		byNoether := grid(r.statistics, r.size, r.threads)
		out := row{text: map[string]string{gridWork: r.text}}
		cpu, clock := cell{column: "Noether, processor time", from: byNoether, metric: "cpu-s", unit: "s"}, cell{column: "Noether, time", from: byNoether, metric: "s/op", unit: "s"}
		if r.peer == "" {
			out.cells = []cell{cpu, clock}
		} else {
			size := strings.Fields(r.size)
			byPeer := peer("internal/bench/grid.py", r.peer, size[0], size[1], r.step, size[2], r.threads)
			out.ratios = []string{"ratio", "ratio of times"}
			out.cells = []cell{
				{column: "numpy, processor time", from: byPeer, metric: "cpu", unit: "s"}, cpu,
				{column: "numpy, time", from: byPeer, metric: "seconds", unit: "s"}, clock,
			}
		}
		rows = append(rows, out)
	}
	return rows
}

const gridMemory = "50 x 50 layers of pooled maps, peak memory"

// gridMemories returns rows on the memory of a grid with few and with many samples.
func gridMemories() []row {
	var rows []row
	for _, statistics := range []string{"minibatch-cka", "linear-cka", "moments", "moments-with-intervals"} {
		out := row{text: map[string]string{gridMemory: statistics}}
		for _, samples := range []string{"1000", "5000", "20000"} {
			out.cells = append(out.cells, cell{column: samples + " samples", from: grid(statistics, samples+" 50 0", "1"), metric: "MiB-peak", unit: "MiB", once: true})
		}
		rows = append(rows, out)
	}
	return rows
}

var networkColumns = []string{"network", "every tensor: PyTorch", "every tensor: Noether", "ratio", "other outputs read", "these outputs: PyTorch", "these outputs: Noether", "ratio, these outputs"}

// networks returns a row for each line of networks.txt, with the metric ofPeer of PyTorch and the
// metric of Noether. A line has the network, its input's side, the batch, the class of the PyTorch
// modules whose outputs are read in the second comparison, the names of the same outputs in
// Noether, and what the table calls the network and these outputs.
func networks(ofPeer, metric, unit, threads string) []row {
	var rows []row
	for line := range strings.Lines(networkList) {
		f := strings.Fields(line)
		net, side, batch, class, layers := f[0], f[1], f[2], f[3], f[4]
		title, outputs, _ := strings.Cut(strings.Join(f[5:], " "), ", ")
		settings := []string{"NOETHER_BENCH_MODEL=model:" + net + ":" + side, "NOETHER_BENCH_SIZE=" + side, "NOETHER_BENCH_BATCH=" + batch,
			"NOETHER_BENCH_LAYERS=" + layers, "NOETHER_BENCH_THREADS=" + threads}
		script := func(kept string) *source {
			return peer("internal/bench/networks.py", "$PEERS", net, side, batch, kept, threads)
		}
		rows = append(rows, row{text: map[string]string{"network": title, "other outputs read": outputs}, ratios: []string{"ratio", "ratio, these outputs"}, cells: []cell{
			{column: "every tensor: PyTorch", from: script("all"), metric: ofPeer, unit: unit, memory: "peak_mib"},
			{column: "every tensor: Noether", from: golang("internal/model", "LayersAll$", 7, settings...), metric: metric, unit: unit, memory: "peak-MiB"},
			{column: "these outputs: PyTorch", from: script(class), metric: ofPeer, unit: unit, memory: "peak_mib"},
			{column: "these outputs: Noether", from: golang("internal/model", "Layers$", 7, settings...), metric: metric, unit: unit, memory: "peak-MiB"},
		}})
	}
	return rows
}

const valuesRead = "values read of an image"

// largeNetworks are the names and titles of networks whose outputs take much memory.
var largeNetworks = [][2]string{{"resnet50", "ResNet-50"}, {"vgg11", "VGG-11"}, {"convnext_tiny", "ConvNeXt tiny"}, {"swin_t", "Swin tiny"}, {"vit_b_16", "ViT-B/16"}}

// networkMemories returns rows on the peak memory with every tensor of a network read, for one
// image at a time and for eight.
func networkMemories() []row {
	var rows []row
	for _, n := range largeNetworks {
		r := row{text: map[string]string{"network": n[1]}}
		add := func(program, metric, read, batch string, from *source) {
			r.cells = append(r.cells, cell{column: "batch " + batch + ": " + program, from: from, metric: metric, unit: "MiB", once: true})
			if batch == "1" {
				r.cells = append(r.cells, cell{column: valuesRead + ": " + program, from: from, metric: read, unit: "MiB", once: true})
			}
		}
		for _, batch := range []string{"1", "8"} {
			add("PyTorch", "peak_mib", "mib_kept_per_image", batch, peer("internal/bench/networks.py", "$PEERS", n[0], "224", batch, "all", "1"))
			add(noether, "peak-MiB", "MiB/image", batch, golang("internal/model", "LayersAll$", 3,
				"NOETHER_BENCH_MODEL=model:"+n[0]+":224", "NOETHER_BENCH_BATCH="+batch, "NOETHER_BENCH_THREADS=1"))
		}
		rows = append(rows, r)
	}
	return rows
}

// distanceMemories returns rows on the peak memory of a study of the distances between clean and
// rotated images at every tensor, with the batch that Noether chooses, and of PyTorch for the same.
func distanceMemories() []row {
	const text = `name: distances
data: [{name: data, images: $DATA/imagenet-samples, limit: 24}]
models: [{name: net, onnx: $MODEL, preprocess: {resize: 256, crop: 224, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}, layers: all}]
transforms: [{name: quarter, rotate: {values: [90]}}]
measures: [distance]
`
	var rows []row
	for _, n := range largeNetworks {
		r := row{text: map[string]string{"network": n[1]}}
		for _, batch := range []string{"1", "8"} {
			r.cells = append(r.cells, cell{column: "PyTorch, batch " + batch, from: peer("internal/bench/networks.py", "$PEERS", n[0], "224", batch, "distances", "2"), metric: "peak_mib", unit: "MiB", once: true})
		}
		r.cells = append(r.cells, cell{column: noether, from: studyMemory(n[0], text), metric: "MiB-peak", unit: "MiB", once: true})
		rows = append(rows, r)
	}
	return rows
}

// unitMemory returns rows on the firing rates of many units within a bound of memory. Combinations
// that need many passes over all layers are left out.
func unitMemory() []row {
	var rows []row
	for _, group := range []struct{ units, benchmark, images string }{
		{"188,416, all ReLUs of the ResNet-20, `memory: 64MiB`", "all-64MiB", "200 800 3200"},
		{"188,416, all ReLUs of the ResNet-20, `memory: 16MiB`", "all-16MiB", "200 800"},
		{"24,576, ReLUs of its last stage, `memory: 8MiB`", "last-8MiB", "800 3200 10000"},
		{"16,384, its second ReLU, `memory: 2MiB`", "first-2MiB", "800 3200 10000"},
	} {
		for _, images := range strings.Fields(group.images) {
			rows = append(rows, row{text: map[string]string{"units": group.units, "images": images}, cells: []cell{
				{column: "processor time", from: golang("internal/procedure/firing", "Inputs/^"+group.benchmark+"-"+images+"$", 1), metric: "cpu-s", unit: "s", memory: "MiB-peak", once: true},
			}})
		}
	}
	return rows
}

// page returns a row on a report in the browser.
func page(text, benchmark string) row {
	from := golang("internal/report/html", "FirstView/"+benchmark+"$", 5)
	return row{text: map[string]string{"page": text}, cells: []cell{
		{column: "size", from: from, metric: "MB", unit: "MB", once: true},
		{column: "processor time of the main thread", from: from, metric: "ms-main-thread/view", unit: "ms"},
		{column: "wall-clock time", from: from, metric: "ms/view", unit: "ms"},
	}}
}
