//go:build unix

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
)

// The columns of the table of a machine with a graphics processor (GPU). Noether runs on the GPU by
// WebGPU, and once on all cores of the machine's CPU.
const (
	gpuWork    = "on a graphics processor"
	gpuPeer    = "PyTorch, CUDA"
	gpuNoether = "Noether, `webgpu`"
	gpuCPU     = "Noether, `cpu`"
)

// gpus returns the rows of the table of a machine with a GPU. PyTorch and Noether do the same work
// on it. Photographs are read, decoded, resized and cropped in the measured time. The two scores of
// SEIS are invariance and equivariance.
func gpus() []row {
	compare := func(work, metric string, ofPeer *source, noether func(device string) *source, unit string) row {
		return row{text: map[string]string{gpuWork: work}, ratios: []string{"ratio"}, cells: []cell{
			{column: gpuPeer, from: ofPeer, metric: "per_second", unit: unit},
			{column: gpuNoether, from: noether("webgpu"), metric: metric, unit: unit},
			{column: gpuCPU, from: noether("cpu"), metric: metric, unit: unit, once: true},
		}}
	}
	photos := func(n int, layers, measures string) func(device string) *source {
		return func(device string) *source { return copied(n, photoStudy(n, layers, measures, device)) }
	}
	photoPeer := func(n int, measure string) *source {
		return copied(n, peer("internal/bench/gpu.py", "$PEERS", "photos", "$WORK/"+copiedPhotos(n), measure))
	}
	benchmark := func(pkg, name string, iterations int, settings ...string) func(device string) *source {
		return func(device string) *source {
			return golang(pkg, name, iterations, append([]string{"NOETHER_BENCH_DEVICE=" + device}, settings...)...)
		}
	}
	net := []string{"NOETHER_BENCH_MODEL=model:resnet18:224", "NOETHER_BENCH_SIZE=224", "NOETHER_BENCH_BATCH=32"}
	return []row{
		compare("effective invariance, ResNet-50 at 224, 1,000 photographs, three rotations", "images/s",
			photoPeer(1000, "invariance"), photos(1000, "output", "effective-invariance"), "images/s"),
		compare("and distances at its 16 residual sums, 200 photographs", "images/s",
			photoPeer(200, "distance"), photos(200, "op:Add", "effective-invariance, distance"), "images/s"),
		compare("SEIS at the 19 convolutions of a ResNet-20, 2,000 CIFAR-10 pairs, the two scores", "images/s",
			peer("internal/bench/gpu.py", "$PEERS", "seis", "$DATA/cifar10/test_batch.bin", "2000"), benchmark("internal/study/run", "SEIS/scores$", 1), "pairs/s"),
		compare("one step of an inversion, ResNet-18 at 224, batch 32", "images/s",
			peer("internal/bench/gpu.py", "$PEERS", "invert", "resnet18", "224", "32"), benchmark("internal/invert", "Step$", 10, net...), "images/s"),
		compare("one step of SGD, CIFAR ResNet-18, batch 128", "images/s",
			peer("internal/bench/gpu.py", "$PEERS", "train", "cifar_resnet18", "32", "128"), benchmark("internal/train", "SGD/cifar_resnet18_128$", 20), "images/s"),
		compare("one epoch of a 768-512-256-1 probe, batch 32, eight steps per call of ONNX Runtime", "samples/s",
			peer("internal/bench/gpu.py", "$PEERS", "probe", "768", "512,256", "2048"), benchmark("internal/train", "Probe/spin=false/stepsPerRun=8$", 3), "samples/s"),
	}
}

// copiedPhotos is the name of the folder, in the work folder, that has n photographs, copies
// included.
func copiedPhotos(n int) string { return fmt.Sprintf("photos-%d", n) }

// copied links n photographs of the test data into one folder, each as often as necessary under
// different names, then runs a source on them.
func copied(n int, then *source) *source {
	name := copiedPhotos(n)
	return prepared(name, then, "photos.py", "$DATA/imagenet-samples", "--copies", strconv.Itoa(n), "$WORK/"+name)
}

// photoStudy runs a study of a ResNet-50 on the n photographs that copied links, under three
// rotations. Its metric "images/s" is the number of forward passes over the time of the whole run.
func photoStudy(n int, layers, measures, device string) *source {
	passes := float64(4 * n) // of each photograph and its three rotations
	return &source{func(ctx context.Context, r *runner) (metrics, error) {
		text := fmt.Sprintf(`name: photos
data: [{name: data, images: %s}]
models: [{name: net, onnx: $MODEL, preprocess: {resize: 256, crop: 224, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}, layers: [%q]}]
transforms: [{name: quarter, rotate: {values: [90, 180, 270]}}]
measures: [%s]
`, filepath.Join(r.work, copiedPhotos(n)), layers, measures)
		used, err := runStudy(ctx, r, "resnet50", text, "--device", device)
		if err != nil {
			return nil, err
		}
		return metrics{"images/s": passes / used["s"]}, nil
	}}
}
