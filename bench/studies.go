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

const (
	studyColumn  = "study, three rotations"
	engineTime   = "engine"
	decodingTime = "waiting for decoding"
	otherTime    = "all other work"
	share        = "of the engine's time"
)

// studyTimes returns rows on the time that a study takes beyond the engine's.
func studyTimes() []row {
	const photos, cifar = "images: $DATA/imagenet-samples", "cifar10: $DATA/cifar10/test_batch.bin"
	const predictions, distances = "accuracy, effective-invariance, prediction-divergence", "accuracy, effective-invariance, prediction-divergence, distance"
	var rows []row
	for _, s := range []struct{ title, data, net, frame, layers, measures string }{
		{"predictions of a ResNet-18, 200 photographs", photos, "resnet18", "resize: 256, crop: 224, ", "output", predictions},
		{"and distances at its 17 ReLUs", photos, "resnet18", "resize: 256, crop: 224, ", "op:Relu", distances},
		{"predictions of a ResNet-20, 10,000 images of CIFAR-10", cifar, "", "", "output", predictions},
		{"and distances at its ReLUs", cifar, "", "", "op:Relu", distances},
	} {
		text := fmt.Sprintf(`name: times
data: [{name: data, %s}]
models: [{name: net, onnx: $MODEL, preprocess: {%smean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}, layers: [%q]}]
transforms: [{name: quarter, rotate: {values: [90, 180, 270]}}]
measures: [%s]
`, s.data, s.frame, s.layers, s.measures)
		first, again := lastOf(studyTime(s.net, text))
		rows = append(rows, row{text: map[string]string{studyColumn: s.title}, cells: []cell{
			{column: engineTime, from: first, metric: "engine", unit: "s"},
			{column: decodingTime, from: again, metric: "decoding", unit: "s"},
			{column: otherTime, from: again, metric: "other", unit: "s"},
			{column: share, from: again, metric: "share", unit: "%"},
		}})
	}
	return rows
}

// studyTime runs a study of a network, or of the ResNet-20 of the test data if net is "". Its metrics
// are the times that run.json states, in seconds: "engine", "decoding" (that the engine waits for
// images) and "other"; and "share", that of both in the engine's, in percent.
func studyTime(net, text string) source {
	return func(ctx context.Context, r *runner) (metrics, error) {
		model := filepath.Join(r.data, "models", "resnet20-cifar10.onnx")
		if net != "" {
			var err error
			if model, err = r.model(ctx, net, "224"); err != nil {
				return nil, err
			}
		}
		program, err := r.program(ctx)
		if err != nil {
			return nil, err
		}
		dir, err := os.MkdirTemp(r.work, "study-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		file, out := filepath.Join(dir, "study.yaml"), filepath.Join(dir, "run")
		if err := os.WriteFile(file, []byte(strings.NewReplacer("$DATA", r.data, "$MODEL", model).Replace(text)), 0o666); err != nil {
			return nil, err
		}
		if text, err := exec.CommandContext(ctx, program, "run", file, "-o", out).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("noether run: %w: %s", err, bytes.TrimSpace(text))
		}
		raw, err := os.ReadFile(filepath.Join(out, "run.json"))
		if err != nil {
			return nil, err
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
			return nil, fmt.Errorf("run.json: %w", err)
		}
		m := metrics{}
		for _, s := range record.Used.Stages {
			switch s.Stage {
			case "engine":
				m["engine"] += s.Seconds
			case "decode", "wait":
				m["decoding"] += s.Seconds
			}
		}
		m["other"] = record.Used.Seconds - m["engine"] - m["decoding"]
		m["share"] = 100 * (m["decoding"] + m["other"]) / m["engine"]
		return m, nil
	}
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

// commandTime runs a command of the program. Its metrics are the seconds that it takes ("s"), and its
// peak memory ("MiB-peak").
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
			c.Args = append(c.Args, strings.NewReplacer("$DATA", r.data, "$MODEL", model).Replace(a))
		}
		start := time.Now()
		if out, err := c.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("noether %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
		}
		return metrics{"s": time.Since(start).Seconds(), "MiB-peak": peakMiB(c.ProcessState)}, nil
	}
}
