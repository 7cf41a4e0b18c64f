package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/internal/cluster"
	"github.com/noether-ml/noether/internal/plural"
	"github.com/noether-ml/noether/internal/study/spec"
)

// submitFlags are the flags of noether cluster submit; clusterSubmitCommand describes them. memory
// is --memory, which bounds the accumulators (the running sums of measures); mem and limit are
// --mem and --time, what a task (the part of the study that one process of the cluster computes)
// requests.
type submitFlags struct {
	out, profile, memory             string
	vars                             []string
	slurm, kubernetes, dryRun, again bool
	asJSON                           bool
	calibrate                        time.Duration
	partition, account, qos, gpus    string
	mem, limit, program, container   string
	cpus, tasks, throttle            int
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
	s.BoolVar(&f.asJSON, "json", false, "print JSON")
	s.DurationVar(&f.calibrate, "calibrate", 20*time.Second, "largest time to measure each model; 0: balance by parameters times input size")
	s.StringVar(&f.memory, "memory", "", "memory for the running sums of measures, such as 512MiB")
	s.IntVar(&f.tasks, "tasks", 0, "number of tasks (default: tasks of about an hour each)")
	s.IntVar(&f.throttle, "throttle", 0, "largest number of tasks that run at once")
	s.StringVar(&f.partition, "partition", "", "Slurm's partition")
	s.StringVar(&f.account, "account", "", "account to charge")
	s.StringVar(&f.qos, "qos", "", "quality of service")
	s.StringVar(&f.limit, "time", "", "time limit of a task, such as 4h or 1-12:00:00 (default: twice the measured time plus ten minutes)")
	s.StringVar(&f.mem, "mem", "", "memory of a task, such as 8GiB (default: 1.5 times the measured peak plus 512MiB)")
	s.IntVar(&f.cpus, "cpus-per-task", 0, "cores of a task (default: 4)")
	s.StringVar(&f.gpus, "gpus", "", "GPUs of a task: 1, or a100:1; with --device cuda")
	s.StringVar(&f.program, "program", "", "path of noether on the nodes (default: the path of this program)")
	s.StringVar(&f.container, "container", "", "command before the program, such as 'apptainer exec noether.sif'")
	return c
}

// loadProfile reads the profile (the file with the settings of the cluster) and overrides it by the
// flags.
func (f *submitFlags) loadProfile(c *cobra.Command) (cluster.Profile, error) {
	p, err := cluster.LoadProfile(f.profile)
	if err != nil {
		return p, err
	}
	for _, v := range []struct {
		flag   string
		target *string
		text   string
	}{{"partition", &p.Partition, f.partition}, {"account", &p.Account, f.account}, {"qos", &p.QOS, f.qos},
		{"gpus", &p.GPUs, f.gpus}, {"program", &p.Program, f.program}, {"container", &p.Container, f.container}} {
		if c.Flags().Changed(v.flag) {
			*v.target = v.text
		}
	}
	for _, v := range []struct {
		flag   string
		target *int
		n      int
	}{{"tasks", &p.Tasks, f.tasks}, {"throttle", &p.Throttle, f.throttle}, {"cpus-per-task", &p.CPUs, f.cpus}} {
		if c.Flags().Changed(v.flag) {
			*v.target = v.n
		}
	}
	change, err := parseChange(c, f.mem, f.limit)
	if err != nil {
		return p, err
	}
	if change.Memory > 0 {
		p.Memory = change.Memory
	}
	if change.Time > 0 {
		p.Time = change.Time
	}
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

// parseChange reads --mem and --time, which override the resources of a task. What is not given is
// 0.
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
	f.out = cmp.Or(f.out, defaultFolder(s.Name))
	run, err := filepath.Abs(f.out) // the run folder
	if err != nil {
		return err
	}
	if err := f.refuseRunning(ctx, run); err != nil {
		return err
	}
	sub, err := f.plan(ctx, engine, s, path, run, p)
	if err != nil {
		return err
	}
	if f.dryRun {
		return f.printDry(run, s.Name, sub)
	}
	// The record lists all submissions to the run folder; added is this one, with its number.
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
	if f.asJSON {
		return printJSON(added)
	}
	if err := printTasks(added); err != nil {
		return err
	}
	if f.kubernetes {
		fmt.Printf("next    kubectl apply -f %s\n", cluster.ManifestPath(run, added.Number))
	} else {
		job := added.Jobs[len(added.Jobs)-1]
		fmt.Printf("job     %s, and its merge %s\n", job.ID, job.Merge)
	}
	fmt.Printf("status  noether cluster status %s\n", f.out)
	return nil
}

// refuseRunning returns an error if tasks of the last submission to the run folder are queued or
// running, unless it was cancelled or --again or --dry-run is given.
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

// printDry prints the tasks and the scripts of a submission that is not submitted.
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
			_, err = fmt.Print("\n" + text)
		}
		return err
	}
	task, merge, err := cluster.Slurm{}.Scripts(run, studyName, s)
	if err == nil {
		_, err = fmt.Printf("\n%s\n%s", task, merge)
	}
	return err
}

// printTasks prints the cost of each model, and the number of tasks with their estimated times. A
// cost has the peak memory and the times of opening the model, of reading and measuring all
// samples, and of computing the scores.
func printTasks(s *cluster.Submission) error {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "model\topen\tsamples\tscores\tmemory\t")
	seconds := func(v float64) string {
		return (time.Duration(v*1000) * time.Millisecond).Round(100 * time.Millisecond).String()
	}
	for _, c := range s.Costs {
		if !c.Measured {
			fmt.Fprintf(t, "%s\t\t\t\t\tnot measured %s\n", c.Model, c.Note)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t\n", c.Model, seconds(c.Open), seconds(c.Samples), seconds(c.Scores), mebibytes(c.Memory))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Println()
	shortest, longest, total := s.Tasks[0].Estimate(), s.Tasks[0].Estimate(), time.Duration(0)
	for _, task := range s.Tasks {
		shortest, longest, total = min(shortest, task.Estimate()), max(longest, task.Estimate()), total+task.Estimate()
	}
	fmt.Printf("tasks   %d, with %s each", len(s.Tasks), plural.Of(s.Profile.CPUs, "core"))
	if shortest > 0 {
		fmt.Printf(", %v to %v each and %v in all, at the speed measured here", shortest.Round(time.Second), longest.Round(time.Second), total.Round(time.Second))
	}
	fmt.Println()
	return nil
}
