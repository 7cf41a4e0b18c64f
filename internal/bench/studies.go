//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The columns of the table of whole studies. A study, written as YAML, says what Noether measures:
// data, models, transformations and measures. share is the column of decodingTime and otherTime
// together, as a percentage of engineTime.
const (
	studyColumn  = "study, three rotations"
	engineTime   = "engine"
	decodingTime = "waiting for decoding"
	otherTime    = "all other work"
	share        = "of the engine's time"
)

// studyTimes returns rows of the table on the time of whole studies: that of the engine (ONNX
// Runtime), and how much waiting for decoded images and all other work add to it. A cell of a row
// is one measured number: a metric of a source, which is a benchmark that runs in a process of its
// own. lastOf makes two sources of one: first runs it, and again returns the metrics of that run.
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
		first, again := lastOf(from)
		rows = append(rows, row{text: map[string]string{studyColumn: s.title}, cells: []cell{
			{column: engineTime, from: first, metric: "engine", unit: "s"},
			{column: decodingTime, from: again, metric: "decoding", unit: "s"},
			{column: otherTime, from: again, metric: "other", unit: "s"},
			{column: share, from: again, metric: "share", unit: "%"},
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
// docs/guides/cluster.md estimates the cost of the whole study. A task measures a shard: a part of
// the samples.
func shards() []row {
	var rows []row
	for _, s := range []struct{ net, title string }{{"resnet18", "ResNet-18"}, {"resnet50", "ResNet-50"}} {
		first, again := lastOf(shardTime(s.net))
		rows = append(rows, row{text: map[string]string{shardColumn: s.title}, cells: []cell{
			{column: passTime, from: first, metric: "ms", unit: "ms"},
			{column: openingTime, from: again, metric: "open", unit: "s"},
			{column: scoringTime, from: again, metric: "score", unit: "s"},
		}})
	}
	return rows
}

// shardTime runs a study of 96 photographs under two rotations on one thread, with distances at the
// sums of the network's residual blocks. Its metrics are the processor time of a forward pass in ms
// ("ms"), without the time for opening the model and the data, and the seconds that run.json, the
// record of the run, states for opening ("open") and for scores ("score").
func shardTime(net string) source {
	text := fmt.Sprintf(`name: shard
data: [{name: data, images: $DATA/imagenet-samples, limit: %d}]
models: [{name: net, onnx: $MODEL, preprocess: {resize: 256, crop: 224, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}, layers: ["op:Add"]}]
transforms: [{name: turned, rotate: {values: [10, 20]}}]
measures: [accuracy, effective-invariance, distance]
`, shardImages)
	return func(ctx context.Context, r *runner) (metrics, error) {
		used, err := runStudy(ctx, r, net, text, "--threads", "1")
		if err != nil {
			return nil, err
		}
		const passes = shardImages * (1 + shardRotated)
		open := used.stages["open"]
		return metrics{"ms": 1000 * (used.cpu - open) / passes, "open": open, "score": used.stages["score"]}, nil
	}
}

// studyTime runs a study of a network, or of the ResNet-20 of the test data if net is "". Its
// metrics are the times that run.json states, in seconds: "engine", "decoding" (the engine waits
// for images) and "other" (the rest); and "share", the sum of "decoding" and "other" in percent of
// "engine".
func studyTime(net, text string) source {
	return func(ctx context.Context, r *runner) (metrics, error) {
		used, err := runStudy(ctx, r, net, text)
		if err != nil {
			return nil, err
		}
		m := metrics{"engine": used.stages["engine"], "decoding": used.stages["wait"]}
		m["other"] = used.total - m["engine"] - m["decoding"]
		m["share"] = 100 * (m["decoding"] + m["other"]) / m["engine"]
		return m, nil
	}
}

// studyMemory runs a study of a network. Its metric is the peak memory in MiB ("MiB-peak").
func studyMemory(net, text string) source {
	return func(ctx context.Context, r *runner) (metrics, error) {
		used, err := runStudy(ctx, r, net, text)
		return metrics{"MiB-peak": used.peak}, err
	}
}

// A studyUse is what a run of a study used: the seconds of each stage and of the whole run, as
// run.json states them, and the processor time in seconds and the peak memory in MiB of the command.
type studyUse struct {
	stages           map[string]float64
	cpu, total, peak float64
}

// runStudy runs a study of a network, or of the ResNet-20 of the test data if net is "", with
// further flags of the command run.
func runStudy(ctx context.Context, r *runner, net, text string, flags ...string) (use studyUse, err error) {
	model := filepath.Join(r.data, "models", "resnet20-cifar10.onnx")
	if net != "" {
		if model, err = r.model(ctx, net, "224"); err != nil { // for images of 224 x 224 pixels
			return use, err
		}
	}
	program, err := r.program(ctx)
	if err != nil {
		return use, err
	}
	dir, err := os.MkdirTemp(r.work, "study-")
	if err != nil {
		return use, err
	}
	defer os.RemoveAll(dir)
	file, out := filepath.Join(dir, "study.yaml"), filepath.Join(dir, "run")
	if err := os.WriteFile(file, []byte(strings.NewReplacer("$DATA", r.data, "$WORK", r.work, "$MODEL", model).Replace(text)), 0o666); err != nil {
		return use, err
	}
	command := exec.CommandContext(ctx, program, append([]string{"run", file, "-o", out}, flags...)...)
	if text, err := command.CombinedOutput(); err != nil {
		return use, fmt.Errorf("noether run: %w: %s", err, bytes.TrimSpace(text))
	}
	raw, err := os.ReadFile(filepath.Join(out, "run.json"))
	if err != nil {
		return use, err
	}
	var record struct {
		Used struct {
			Seconds float64 `json:"seconds"`
			Stages  []struct {
				Stage   string  `json:"stage"`
				Seconds float64 `json:"seconds"`
			} `json:"stages"`
		} `json:"used"`
	}
	if err := json.Unmarshal(raw, &record); err != nil {
		return use, fmt.Errorf("run.json: %w", err)
	}
	use.stages = map[string]float64{}
	for _, s := range record.Used.Stages {
		use.stages[s.Stage] += s.Seconds
	}
	state := command.ProcessState
	use.cpu, use.total, use.peak = (state.UserTime() + state.SystemTime()).Seconds(), record.Used.Seconds, peakMiB(state)
	return use, nil
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

// commandTime runs a command of the program. Its metrics are the seconds that the command takes
// ("s"), and its peak memory in MiB ("MiB-peak").
func commandTime(args ...string) source {
	return func(ctx context.Context, r *runner) (metrics, error) {
		model, err := r.model(ctx, "resnet18", "224")
		if err != nil {
			return nil, err
		}
		program, err := r.program(ctx)
		if err != nil {
			return nil, err
		}
		c := exec.CommandContext(ctx, program)
		for _, a := range args {
			c.Args = append(c.Args, strings.NewReplacer("$DATA", r.data, "$WORK", r.work, "$MODEL", model).Replace(a))
		}
		start := time.Now()
		if out, err := c.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("noether %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
		}
		return metrics{"s": time.Since(start).Seconds(), "MiB-peak": peakMiB(c.ProcessState)}, nil
	}
}
