//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/noether-ml/noether/internal/cluster"
)

// A submission is the run folder of a study that is divided into many cluster tasks, all but one of
// which have ended. Models and shards are small, so that files take most of the time.
type submission struct{ models, shards int }

// build makes the folder, without the state of the last shard of the last model, and returns its
// path.
func (s submission) build(ctx context.Context, r *runner) (string, error) {
	name := fmt.Sprintf("submission-%dx%d", s.models, s.shards)
	dir := filepath.Join(r.work, name)
	run := filepath.Join(dir, "run")
	if r.built[name] {
		return run, nil
	}
	if err := s.writeStudies(dir); err != nil {
		return "", err
	}
	noether := func(args ...string) error {
		_, err := r.noether(ctx, dir, args...)
		return err
	}
	// --calibrate 0s: the costs of the models are not measured before they are divided into tasks.
	if err := noether("cluster", "submit", "study.yaml", "--kubernetes", "--profile", "profile.yaml", "-o", "run", "--calibrate", "0s",
		"--tasks", strconv.Itoa(s.models*s.shards)); err != nil {
		return "", err
	}
	// The resolved study, with absolute paths and hashes, which the following runs overwrite.
	resolved, err := os.ReadFile(filepath.Join(run, "study.yaml"))
	if err != nil {
		return "", err
	}
	for i := 1; i <= s.shards; i++ {
		study := "study.yaml"
		if i == s.shards {
			study = "without-last.yaml"
		}
		if err := noether("run", study, "-o", "run", "--shard", fmt.Sprintf("%d/%d", i, s.shards)); err != nil {
			return "", err
		}
	}
	// What the merge will write.
	for _, file := range []string{"run.json", "scores.csv", "scores.parquet", "report.html"} {
		if err := os.RemoveAll(filepath.Join(run, file)); err != nil {
			return "", err
		}
	}
	if err := os.WriteFile(filepath.Join(run, "study.yaml"), resolved, 0o666); err != nil {
		return "", err
	}
	last, err := s.lastTask(run)
	if err != nil {
		return "", err
	}
	for n := 1; n <= s.models*s.shards; n++ {
		if n == last {
			continue
		}
		// 64 samples: the 32 of a shard, and each rotated.
		text, err := json.Marshal(cluster.TaskState{State: cluster.Done, Host: "node", PID: n, Start: 1, Started: time.Now(), Updated: time.Now(), Done: 64, Total: 64})
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(run, "cluster/1/tasks", strconv.Itoa(n)+".json"), text, 0o666); err != nil {
			return "", err
		}
	}
	r.built[name] = true
	return run, nil
}

// writeStudies writes the model, the study, a study without its last model, and the profile.
func (s submission) writeStudies(dir string) error {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	net, err := smallNet()
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "name: simulation\ndata: [{name: shapes, shapes: {n: %d, size: 16}}]\ntransforms: [{rotate: 90}]\nmeasures: [distance]\nmodels:\n", 32*s.shards)
	files := map[string]string{"net.onnx": string(net)}
	for i := range s.models {
		if i == s.models-1 {
			files["without-last.yaml"] = text.String()
		}
		fmt.Fprintf(&text, "  - {name: m%05d, onnx: net.onnx, layers: [conv]}\n", i+1)
	}
	files["study.yaml"] = text.String()
	files["profile.yaml"] = "kubernetes: {image: noether, claim: shared, mount: " + dir + "}\n"
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// lastTask returns the number of the task of the last shard of the last model.
func (s submission) lastTask(run string) (int, error) {
	record, err := cluster.Read(run)
	if err != nil {
		return 0, err
	}
	tasks := record.Submissions[0].Tasks
	if len(tasks) != s.models*s.shards {
		return 0, fmt.Errorf("%d tasks for %d models in %d shards", len(tasks), s.models, s.shards)
	}
	name := fmt.Sprintf("m%05d", s.models)
	i := slices.IndexFunc(tasks, func(t cluster.Task) bool {
		return slices.Equal(t.Models, []string{name}) && (s.shards == 1 || t.Shard.Index == s.shards)
	})
	if i < 0 {
		return 0, fmt.Errorf("no task of the last shard of %s", name)
	}
	return i + 1, nil
}

// A step is a command of noether on a copy of the folder of a submission. RUN and TASK among its
// arguments stand for the copy and the number of the task that has not ended.
type step struct {
	args   []string
	before []string                             // a command before it, which is not measured; nil: none
	change func(s submission, run string) error // changes the copy before both; nil: nothing
}

var steps = map[string]step{
	// The task that has not ended, which computes the scores of the last model.
	"last-task": {args: []string{"cluster", "task", "RUN", "TASK"}},
	// The same while the state of another shard is missing too: it saves its own state and computes no
	// scores.
	"another-task": {args: []string{"cluster", "task", "RUN", "TASK"}, change: removeShard},
	"status":       {args: []string{"cluster", "status", "RUN"}},
	// The merge after all tasks.
	"merge": {args: []string{"merge", "RUN"}, before: []string{"cluster", "task", "RUN", "TASK"}},
}

// runOnSubmission runs a step. Arguments are the numbers of models and of shards, and the name of
// the step. Its metrics are those of call, and the number of system calls on paths in the folder
// ("operations"), which strace records in a second run.
func runOnSubmission(ctx context.Context, r *runner, args []string) (metrics, error) {
	var s submission
	if _, err := fmt.Sscan(args[0]+" "+args[1], &s.models, &s.shards); err != nil {
		return nil, err
	}
	step, ok := steps[args[2]]
	if !ok {
		return nil, fmt.Errorf("no step %q", args[2])
	}
	folder, err := s.build(ctx, r)
	if err != nil {
		return nil, err
	}
	last, err := s.lastTask(folder)
	if err != nil {
		return nil, err
	}
	program, err := r.program(ctx)
	if err != nil {
		return nil, err
	}
	run := filepath.Join(r.work, "copy")
	trace := filepath.Join(r.work, "trace")
	noether := func(wrapper, args []string) (metrics, error) {
		_, used, err := call(ctx, "", nil, r.replace(slices.Concat(wrapper, []string{program}, args), "RUN", run, "TASK", strconv.Itoa(last))...)
		return used, err
	}
	measure := func(wrapper ...string) (metrics, error) {
		defer os.RemoveAll(run)
		if _, _, err := call(ctx, "", nil, "cp", "-a", folder, run); err != nil {
			return nil, err
		}
		if step.change != nil {
			if err := step.change(s, run); err != nil {
				return nil, err
			}
		}
		if step.before != nil {
			if _, err := noether(nil, step.before); err != nil {
				return nil, err
			}
		}
		return noether(wrapper, step.args)
	}
	used, err := measure()
	if err != nil {
		return nil, err
	}
	if _, err := measure("strace", "-f", "-qq", "-y", "-e", "trace=%file,getdents64,fsync", "-o", trace); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(trace)
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, run) {
			used["operations"]++
		}
	}
	return used, err
}

// removeShard removes the state of the first shard of the model that lacks the last one, so that
// the last shard is not the last to finish.
func removeShard(s submission, run string) error {
	// The name of a log of states begins with the model and the shard.
	logs := func(shard int) ([]string, error) {
		return filepath.Glob(filepath.Join(run, "states", fmt.Sprintf("*.%dof%d.*.log", shard, s.shards)))
	}
	firsts, err := logs(1)
	if err != nil {
		return err
	}
	lasts, err := logs(s.shards)
	if err != nil {
		return err
	}
	model := func(log string) string { return strings.SplitN(filepath.Base(log), ".", 2)[0] }
	for _, first := range firsts {
		if !slices.ContainsFunc(lasts, func(last string) bool { return model(last) == model(first) }) {
			return os.Remove(first)
		}
	}
	return fmt.Errorf("no model lacks its last shard in %s", run)
}
