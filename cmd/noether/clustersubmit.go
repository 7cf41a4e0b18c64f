package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/noether-ml/noether/internal/cluster"
	"github.com/noether-ml/noether/internal/plural"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/spec"
)

// overrides are the flags that override the profile.
type submitFlags struct {
	out, profile, memory             string
	vars                             []string
	slurm, kubernetes, dryRun, again bool
	asJSON                           bool
	calibrate                        time.Duration
	mem, limit                       string
	overrides                        cluster.Profile
	python                           pythonFlags
}

func clusterSubmitCommand(engine *engineFlags) *cobra.Command {
	var f submitFlags
	c := &cobra.Command{
		Use:   "submit STUDY",
		Short: "Divide a study into tasks and submit them",
		Long: `Opens the study, measures the cost of each model on a few samples, divides the work into tasks of
about equal cost, and submits them: to Slurm as one job array followed by a merge job, or as a
manifest for kubectl apply. Flags override the profile.`,
		Example: `  noether cluster submit study.yaml --slurm -o runs/big --dry-run
  noether cluster submit study.yaml --slurm -o runs/big --tasks 100 --partition cpu --time 4h
  noether cluster submit study.yaml --kubernetes --profile k8s.yaml -o /mnt/shared/runs/big`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if f.slurm == f.kubernetes {
				return usagef(c, "submit needs --slurm or --kubernetes")
			}
			p, err := f.loadProfile(c)
			if err != nil {
				return err
			}
			return f.submit(c, engine, args[0], p)
		},
	}
	s := c.Flags()
	s.BoolVar(&f.slurm, "slurm", false, "submit to Slurm")
	s.BoolVar(&f.kubernetes, "kubernetes", false, "write a manifest for kubectl apply")
	s.StringVarP(&f.out, "out", "o", "", "run folder, on a file system that the nodes share (default: runs/NAME)")
	s.StringVar(&f.profile, "profile", "", "YAML file with the settings of the cluster (default: noether/cluster.yaml in the user's configuration folder, if it exists)")
	s.StringArrayVar(&f.vars, "var", nil, "NAME=VALUE for ${NAME} in the study; may be repeated")
	s.BoolVar(&f.dryRun, "dry-run", false, "print the tasks and the script without submitting them")
	s.BoolVar(&f.again, "again", false, "submit even if tasks of an earlier submission are queued or running")
	addJSON(c, &f.asJSON)
	f.python.add(s)
	s.DurationVar(&f.calibrate, "calibrate", 2*time.Minute, "largest time to measure each model; 0: balance by parameters times input size")
	s.StringVar(&f.memory, "memory", "", "memory for the running sums of measures, such as 512MiB")
	s.StringVar(&f.limit, "time", "", "time limit of a task, such as 4h or 1-12:00:00 (default: twice the measured time plus ten minutes)")
	s.StringVar(&f.mem, "mem", "", "memory of a task, such as 8GiB (default: 1.5 times the measured peak plus 512MiB)")
	addOverrides(s, &f.overrides)
	return c
}

func addOverrides(s *pflag.FlagSet, p *cluster.Profile) {
	s.IntVar(&p.Tasks, "tasks", 0, "number of tasks (default: tasks of about an hour each)")
	s.IntVar(&p.Throttle, "throttle", 0, "largest number of tasks that run at once")
	s.StringVar(&p.Partition, "partition", "", "Slurm's partition")
	s.StringVar(&p.Account, "account", "", "account to charge")
	s.StringVar(&p.QOS, "qos", "", "quality of service")
	s.IntVar(&p.CPUs, "cpus-per-task", 0, "cores of a task (default: 4)")
	s.StringVar(&p.GPUs, "gpus", "", "GPUs of a task: 1, or a100:1; with --device cuda")
	s.StringVar(&p.Program, "program", "", "path of noether on the nodes (default: the path of this program)")
	s.StringVar(&p.Container, "container", "", "command before the program, such as 'apptainer exec noether.sif'")
}

// loadProfile reads the profile and overrides it by the flags.
func (f *submitFlags) loadProfile(c *cobra.Command) (cluster.Profile, error) {
	p, err := cluster.LoadProfile(f.profile)
	if err != nil {
		return p, err
	}
	var fromFile cluster.Profile
	overrides := pflag.NewFlagSet("", pflag.ContinueOnError)
	addOverrides(overrides, &fromFile) // sets the fields to 0
	fromFile = p
	overrides.VisitAll(func(o *pflag.Flag) {
		if given := c.Flag(o.Name); given.Changed {
			err = errors.Join(err, o.Value.Set(given.Value.String()))
		}
	})
	p = fromFile
	if err != nil {
		return p, err
	}
	change, err := parseChange(c, f.mem, f.limit)
	if err != nil {
		return p, err
	}
	p.Memory, p.Time = cmp.Or(change.Memory, p.Memory), cmp.Or(change.Time, p.Time)
	if c.Flags().Changed("device") {
		p.Device = c.Flag("device").Value.String()
	}
	if p.Program == "" && p.Container == "" && f.slurm {
		if p.Program, err = os.Executable(); err != nil {
			return p, err
		}
	}
	if err := p.Check(); err != nil {
		return p, &usageError{c, err}
	}
	return p, nil
}

// parseChange reads --mem and --time. What is not given is 0.
func parseChange(c *cobra.Command, memory, limit string) (cluster.Change, error) {
	var out cluster.Change
	var err error
	if memory != "" {
		if out.Memory, err = spec.ParseSize(memory); err != nil {
			return out, usagef(c, "--mem: %v", err)
		}
	}
	if limit != "" {
		if out.Time, err = cluster.ParseDuration(limit); err != nil {
			return out, usagef(c, "--time: %v", err)
		}
	}
	return out, nil
}

// submit divides the study at path into tasks, and submits or prints them.
func (f *submitFlags) submit(c *cobra.Command, engine *engineFlags, path string, p cluster.Profile) error {
	ctx := c.Context()
	s, err := loadStudy(c, path, f.vars, f.memory)
	if err != nil {
		return err
	}
	stopPython, err := f.python.start(ctx, s)
	if err != nil {
		return err
	}
	defer stopPython()
	f.out = cmp.Or(f.out, defaultFolder(s.Name))
	run, err := filepath.Abs(f.out)
	if err != nil {
		return err
	}
	if err := f.refuseRunning(ctx, run); err != nil {
		return err
	}
	sub, err := f.plan(ctx, engine, s, run, p)
	if err != nil {
		return err
	}
	sub.Python = len(s.Python()) > 0
	if f.dryRun {
		return f.printDry(run, s.Name, sub)
	}
	record, added, err := cluster.New(run, s.Name, *sub)
	if err != nil {
		return err
	}
	if f.kubernetes {
		err = cluster.Kubernetes{}.Submit(run, record, added)
	} else {
		err = cluster.Slurm{}.Submit(ctx, run, record, added)
	}
	if err != nil {
		return err
	}
	return show(f.asJSON, added, func() error {
		if err := printTasks(added); err != nil {
			return err
		}
		if f.kubernetes {
			fmt.Fprintf(stdout, "next    kubectl apply -f %s\n", cluster.ManifestPath(run, added.Number))
		} else {
			job := added.Jobs[len(added.Jobs)-1]
			fmt.Fprintf(stdout, "job     %s, and its merge %s\n", job.ID, job.Merge)
		}
		fmt.Fprintf(stdout, "status  noether cluster status %s\n", f.out)
		return nil
	})
}

// refuseRunning returns an error if tasks of the last submission are queued or running, unless it
// was cancelled or --again or --dry-run is given.
func (f *submitFlags) refuseRunning(ctx context.Context, run string) error {
	r, err := cluster.Read(run)
	if errors.Is(err, fs.ErrNotExist) || f.again || f.dryRun {
		return nil
	}
	if err != nil {
		return err
	}
	last, err := r.Submission(0)
	if err != nil {
		return nil // there is no submission
	}
	status, err := cluster.Find(ctx, run, last)
	if err != nil {
		return err
	}
	if n := status.Count(cluster.Queued) + status.Count(cluster.Running); n > 0 && last.Cancelled == nil {
		return fmt.Errorf("%d tasks of submission %d are queued or running: cancel them with noether cluster cancel %s, or submit in addition with --again", n, last.Number, f.out)
	}
	return nil
}

func (f *submitFlags) printDry(run, studyName string, s *cluster.Submission) error {
	if f.asJSON {
		return printJSON(s)
	}
	if err := printTasks(s); err != nil {
		return err
	}
	if f.kubernetes {
		text, err := cluster.Kubernetes{}.Manifest(run, studyName, s)
		if err == nil {
			_, err = fmt.Fprint(stdout, "\n"+text)
		}
		return err
	}
	task, merge, err := cluster.Slurm{}.Scripts(run, studyName, s)
	if err == nil {
		_, err = fmt.Fprintf(stdout, "\n%s\n%s", task, merge)
	}
	return err
}

// Without --dry-run it creates the run folder and writes the study into it. It is an error if all
// cells are finished.
func (f *submitFlags) plan(ctx context.Context, engine *engineFlags, s *study.Study, run string, p cluster.Profile) (*cluster.Submission, error) {
	engine.device, engine.threads = p.Device, min(p.CPUs, runtime.NumCPU())
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
	failed := plan.Failed()
	if len(failed) == 0 && !slices.ContainsFunc(work, func(w study.Work) bool { return w.Cells > 0 }) {
		return nil, fmt.Errorf("all cells are finished: noether merge %s writes the scores", f.out)
	}
	if !f.dryRun {
		if err := study.Prepare(plan, run, o); err != nil {
			return nil, err
		}
	}
	var measure func(context.Context, study.Work) (cluster.Cost, error)
	if f.calibrate > 0 {
		measure = func(ctx context.Context, w study.Work) (cluster.Cost, error) {
			if !f.asJSON {
				note("measuring " + w.Model)
			}
			ctx, cancel := context.WithTimeout(ctx, f.calibrate)
			defer cancel()
			return cluster.Measure(ctx, s, run, w, o)
		}
	}
	costs, err := cluster.Costs(ctx, work, measure)
	if err != nil {
		return nil, err
	}
	for _, failure := range failed {
		note(failure.Describe() + " failed here and will probably fail on the cluster: " + failure.Error)
		if failure.Model != "" && !slices.ContainsFunc(costs, func(c cluster.Cost) bool { return c.Model == failure.Model }) {
			costs = append(costs, cluster.Cost{Model: failure.Model, Note: "it cannot be opened here"})
		}
	}
	// The number 1 is for the paths that --dry-run prints; cluster.New sets the next free number.
	out := &cluster.Submission{Number: 1, Scheduler: "slurm", Profile: p, Costs: costs, Tasks: cluster.Balance(costs, f.taskCount(ctx, costs, p))}
	if f.kubernetes {
		out.Scheduler = "kubernetes"
	}
	return out, nil
}

// taskCount returns the profile's number of tasks, or as many as take about an hour each, within
// Slurm's limit for job arrays.
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

// printTasks prints the cost of each model, and the number of tasks with their estimated times.
func printTasks(s *cluster.Submission) error {
	t := newTable(stdout)
	fmt.Fprintln(t, "model\topen\tsamples\tscores\tmemory\t")
	seconds := func(v float64) string {
		return (time.Duration(v*1000) * time.Millisecond).Round(100 * time.Millisecond).String()
	}
	for _, c := range s.Costs {
		if !c.Measured {
			t.printf("%s\t\t\t\t\tnot measured %s\n", c.Model, c.Note)
			continue
		}
		t.printf("%s\t%s\t%s\t%s\t%s\t\n", c.Model, seconds(c.Open), seconds(c.Samples), seconds(c.Scores), mebibytes(c.Memory))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(stdout)
	shortest, longest, total := s.Tasks[0].Estimate(), s.Tasks[0].Estimate(), time.Duration(0)
	for _, task := range s.Tasks {
		shortest, longest, total = min(shortest, task.Estimate()), max(longest, task.Estimate()), total+task.Estimate()
	}
	fmt.Fprintf(stdout, "tasks   %d, with %s each", len(s.Tasks), plural.Of(s.Profile.CPUs, "core"))
	if shortest > 0 {
		fmt.Fprintf(stdout, ", %v to %v each and %v in all, at the speed measured here", shortest.Round(time.Second), longest.Round(time.Second), total.Round(time.Second))
	}
	fmt.Fprintln(stdout)
	return nil
}
