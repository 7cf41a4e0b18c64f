package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/noether-ml/noether/internal/cluster"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/scores"
)

// plan opens the study at path, determines the costs of its models (in time and memory), and
// divides it into tasks, the processes that the scheduler of the cluster runs. The profile p holds
// settings of the cluster, such as the cores of a task. Without --dry-run plan creates the run
// folder, which gets the results, and writes the study into it, with absolute paths and hashes. It
// is an error if all cells (scores of one measure for a model, data, transformation value and
// trial, a repetition of all random draws) are finished.
func (f *submitFlags) plan(ctx context.Context, engine *engineFlags, s *study.Study, path, run string, p cluster.Profile) (*cluster.Submission, error) {
	engine.device = p.Device
	o, err := engine.open()
	if err != nil {
		return nil, err
	}
	plan, err := study.NewPlan(ctx, s, o)
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	work, err := study.Remaining(plan, run, o)
	if err != nil {
		return nil, err
	}
	if len(plan.Failed()) == 0 && !slices.ContainsFunc(work, func(w study.Work) bool { return w.Cells > 0 }) {
		return nil, fmt.Errorf("all cells are finished: noether merge %s writes the scores", f.out)
	}
	if !f.dryRun {
		if err := study.Prepare(plan, run, o); err != nil {
			return nil, err
		}
	}
	costs, err := cluster.Costs(ctx, work, f.calibrator(engine, path, p))
	if err != nil {
		return nil, err
	}
	costs = withFailed(costs, plan.Failed())
	// The submission's number 1 is for the paths that --dry-run prints; cluster.New sets the next
	// free number.
	out := &cluster.Submission{Number: 1, Scheduler: "slurm", Profile: p, Costs: costs, Tasks: cluster.Balance(costs, f.taskCount(ctx, costs, p))}
	if f.kubernetes {
		out.Scheduler = "kubernetes"
	}
	return out, nil
}

// calibrator returns a function that prints the name of a model (not with --json) and measures its
// cost, or nil if --calibrate is 0.
func (f *submitFlags) calibrator(engine *engineFlags, path string, p cluster.Profile) func(context.Context, study.Work) (cluster.Cost, error) {
	if f.calibrate <= 0 {
		return nil
	}
	return func(ctx context.Context, w study.Work) (cluster.Cost, error) {
		if !f.asJSON {
			note("measuring " + w.Model)
		}
		return f.measure(ctx, engine, path, w, p)
	}
}

// withFailed adds costs for models that this machine cannot open, so that a task tries to open them
// on the cluster.
func withFailed(costs []cluster.Cost, failed []scores.Failure) []cluster.Cost {
	for _, failure := range failed {
		note(failure.Describe() + " failed here and will probably fail on the cluster: " + failure.Error)
		if failure.Model != "" && !slices.ContainsFunc(costs, func(c cluster.Cost) bool { return c.Model == failure.Model }) {
			costs = append(costs, cluster.Cost{Model: failure.Model, Note: "it cannot be opened here"})
		}
	}
	return costs
}

// taskCount returns the number of tasks: that of the profile, or as many as take about an hour
// each. Slurm's limit for job arrays bounds it, except with --dry-run.
func (f *submitFlags) taskCount(ctx context.Context, costs []cluster.Cost, p cluster.Profile) int {
	n := p.Tasks
	if n == 0 {
		n = cluster.TaskCount(costs, time.Hour)
	}
	if f.slurm && !f.dryRun {
		if limit := (cluster.Slurm{}).MaxTasks(ctx); limit > 0 && n > limit {
			note(fmt.Sprintf("job arrays of this cluster have at most %d tasks: using %[1]d instead of %[2]d", limit, n))
			n = limit
		}
	}
	return n
}

// measure measures the cost of a model by noether cluster calibrate, in a separate process: its
// peak memory is that of the model, and a crash of ONNX Runtime does not end this process. An error
// is the last line that the process printed.
func (f *submitFlags) measure(ctx context.Context, engine *engineFlags, path string, w study.Work, p cluster.Profile) (cluster.Cost, error) {
	program, err := os.Executable()
	if err != nil {
		return cluster.Cost{}, err
	}
	args := []string{"cluster", "calibrate", path, "--model", w.Model, "--for", f.calibrate.String(), "--device", p.Device,
		"--threads", strconv.Itoa(min(p.CPUs, runtime.NumCPU())), "--onnxruntime", engine.library, "--memory", f.memory}
	for _, v := range f.vars {
		args = append(args, "--var", v)
	}
	ctx, cancel := context.WithTimeout(ctx, f.calibrate+5*time.Minute) // additional time to open large models
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		lines := bytes.Split(bytes.TrimSpace(errs.Bytes()), []byte("\n"))
		return cluster.Cost{}, fmt.Errorf("%s", lines[len(lines)-1])
	}
	var cost cluster.Cost
	if err := json.Unmarshal(out.Bytes(), &cost); err != nil {
		return cost, err
	}
	if peak := peakMemory(cmd.ProcessState); peak > 0 {
		// The measured peak includes the accumulators (running sums of measures) of one
		// transformation only. A pass, one reading of the samples for many cells, has those of
		// several: w.Bytes.
		cost.Memory = peak + w.Bytes
	}
	return cost, nil
}
