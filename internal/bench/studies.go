//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/noether-ml/noether/scores"
)

// The columns of the table of whole studies. share is that of decodingTime and otherTime together.
const (
	studyColumn  = "study, three rotations"
	engineTime   = "engine"
	decodingTime = "waiting for decoding"
	otherTime    = "all other work"
	share        = "of the engine's time"
)

// studyTimes returns rows on the time of whole studies: that of the engine, and how much waiting
// for decoded images and all other work add to it.
func studyTimes() []row {
	const photos, photoCount, cifar = "images: $DATA/imagenet-samples", 2000, "cifar10: $DATA/cifar10/test_batch.bin"
	manyPhotos := "images: $WORK/" + copiedPhotos(photoCount)
	const predictions, distances = "accuracy, effective-invariance, prediction-divergence", "accuracy, effective-invariance, prediction-divergence, distance"
	var rows []row
	for _, s := range []struct{ title, data, net, frame, layers, measures string }{
		{"predictions of a ResNet-18, 200 photographs", photos, "resnet18", "resize: 256, crop: 224, ", "output", predictions},
		{"and distances at its 17 ReLUs", photos, "resnet18", "resize: 256, crop: 224, ", "op:Relu", distances},
		{"the same distances, 2,000 photographs", manyPhotos, "resnet18", "resize: 256, crop: 224, ", "op:Relu", distances},
		{"predictions of a ResNet-20, 10,000 images of CIFAR-10", cifar, "", "", "output", predictions},
		{"and distances at its ReLUs", cifar, "", "", "op:Relu", distances},
	} {
		text := fmt.Sprintf(`name: times
data: [{name: data, %s}]
models: [{name: net, onnx: $MODEL, preprocess: {%smean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}, layers: [%q]}]
transforms: [{name: quarter, rotate: {values: [90, 180, 270]}}]
measures: [%s]
`, s.data, s.frame, s.layers, s.measures)
		from := studyTime(s.net, text)
		if s.data == manyPhotos {
			from = copied(photoCount, from)
		}
		rows = append(rows, row{text: map[string]string{studyColumn: s.title}, cells: []cell{
			{column: engineTime, from: from, metric: "engine", unit: "s"},
			{column: decodingTime, from: from, metric: "decoding", unit: "s"},
			{column: otherTime, from: from, metric: "other", unit: "s"},
			{column: share, from: from, metric: "share", unit: "%"},
		}})
	}
	return rows
}

const (
	shardColumn  = "one task on one core"
	passTime     = "processor time of a forward pass"
	openingTime  = "opening"
	scoringTime  = "scores"
	shardImages  = 96
	shardRotated = 2 // rotated versions of each image
)

// shards returns rows on the processor time of one task of a large study, from which
// docs/guides/cluster.md estimates the cost of the whole study.
func shards() []row {
	var rows []row
	for _, s := range []struct{ net, title string }{{"resnet18", "ResNet-18"}, {"resnet50", "ResNet-50"}} {
		from := shardTime(s.net)
		rows = append(rows, row{text: map[string]string{shardColumn: s.title}, cells: []cell{
			{column: passTime, from: from, metric: "ms", unit: "ms"},
			{column: openingTime, from: from, metric: "open", unit: "s"},
			{column: scoringTime, from: from, metric: "score", unit: "s"},
		}})
	}
	return rows
}

// shardTime runs a study of 96 photographs under two rotations on one thread, with distances at the
// sums of the network's residual blocks. Its metrics are the processor time of a forward pass in ms
// ("ms"), without that of opening, and the seconds of the stages "open" and "score".
func shardTime(net string) *source {
	text := fmt.Sprintf(`name: shard
data: [{name: data, images: $DATA/imagenet-samples, limit: %d}]
models: [{name: net, onnx: $MODEL, preprocess: {resize: 256, crop: 224, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}, layers: ["op:Add"]}]
transforms: [{name: turned, rotate: {values: [10, 20]}}]
measures: [accuracy, effective-invariance, distance]
`, shardImages)
	return &source{func(ctx context.Context, r *runner) (metrics, error) {
		used, err := runStudy(ctx, r, net, text, "--threads", "1")
		if err != nil {
			return nil, err
		}
		const passes = shardImages * (1 + shardRotated)
		return metrics{"ms": 1000 * (used["cpu-s"] - used["open"]) / passes, "open": used["open"], "score": used["score"]}, nil
	}}
}

// studyTime runs a study. Its metrics are the seconds that the engine runs ("engine") and waits for
// images ("decoding"), the rest ("other"), and "decoding" and "other" in percent of "engine".
func studyTime(net, text string) *source {
	return &source{func(ctx context.Context, r *runner) (metrics, error) {
		used, err := runStudy(ctx, r, net, text)
		if err != nil {
			return nil, err
		}
		m := metrics{"engine": used["engine"], "decoding": used["wait"]}
		m["other"] = used["s"] - m["engine"] - m["decoding"]
		m["share"] = 100 * (m["decoding"] + m["other"]) / m["engine"]
		return m, nil
	}}
}

// studyMemory runs a study. Its metric is the peak memory in MiB ("MiB-peak").
func studyMemory(net, text string) *source {
	return &source{func(ctx context.Context, r *runner) (metrics, error) { return runStudy(ctx, r, net, text) }}
}

// runStudy runs a study of a network, or of the ResNet-20 of the test data if net is "", with
// further flags of the command run. Its metrics are those of call, and the seconds of each stage
// and of the whole run ("s") by the record.
func runStudy(ctx context.Context, r *runner, net, text string, flags ...string) (metrics, error) {
	model := filepath.Join(r.data, "models", "resnet20-cifar10.onnx")
	program, err := r.program(ctx)
	if err == nil && net != "" {
		model, err = r.model(ctx, net, "224")
	}
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(r.work, "study-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file, out := filepath.Join(dir, "study.yaml"), filepath.Join(dir, "run")
	if err := os.WriteFile(file, []byte(r.replace([]string{text}, "$MODEL", model)[0]), 0o666); err != nil {
		return nil, err
	}
	_, used, err := call(ctx, "", nil, append([]string{program, "run", file, "-o", out}, flags...)...)
	if err != nil {
		return nil, err
	}
	record, err := scores.ReadRecord(filepath.Join(out, "run.json"))
	if err != nil {
		return nil, err
	}
	for _, s := range record.Used.Stages {
		used[s.Name] += s.Seconds
	}
	used["s"] = record.Used.Seconds
	return used, nil
}

const commandColumn = "command"

// commands returns rows on the time of commands that do not run models.
func commands() []row {
	var rows []row
	for _, c := range [][]string{{"--help"}, {"inspect", "$DATA/models/resnet20-cifar10.onnx"}, {"inspect", "$MODEL"}} {
		title := "`noether " + strings.Join(c, " ") + "`"
		title = strings.NewReplacer("$DATA/models/", "", "$MODEL", "resnet18.onnx").Replace(title)
		rows = append(rows, row{text: map[string]string{commandColumn: title}, cells: []cell{
			{column: "time", from: commandTime(c...), metric: "s", unit: "s", memory: "MiB-peak"},
		}})
	}
	return rows
}

// commandTime runs a command of the program. Its metrics are those of call.
func commandTime(args ...string) *source {
	return &source{func(ctx context.Context, r *runner) (metrics, error) {
		model, err := r.model(ctx, "resnet18", "224")
		if err != nil {
			return nil, err
		}
		program, err := r.program(ctx)
		if err != nil {
			return nil, err
		}
		_, used, err := call(ctx, "", nil, append([]string{program}, r.replace(args, "$MODEL", model)...)...)
		return used, err
	}}
}
