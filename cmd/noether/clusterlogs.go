package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/internal/cluster"
)

// clusterLogsCommand returns the command noether cluster logs. A submission is a list of tasks
// given to a cluster's scheduler. A task is one call of noether run, for some of the models or a
// part of the samples; the merge is the job at the end that combines their results in the run
// folder.
func clusterLogsCommand() *cobra.Command {
	var number, lines int
	var tasks []int
	var merge, asJSON bool
	c := &cobra.Command{
		Use:   "logs RUN",
		Short: "Print the logs of tasks",
		Long: `Prints the last lines of the logs of the tasks that retry would submit (failed, stopped, killed, lost or cancelled), or
of the given tasks.`,
		Example: `  noether cluster logs runs/big
  noether cluster logs runs/big --task 3 --lines 100
  noether cluster logs runs/big --merge`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			run, _, s, err := openSubmission(args[0], number)
			if err != nil {
				return err
			}
			if lines < 1 {
				return usagef(c, "--lines is %d; it must be 1 or more", lines)
			}
			if len(tasks) == 0 && !merge {
				status, err := cluster.Find(c.Context(), run, s)
				if err != nil {
					return err
				}
				for _, t := range status.Tasks {
					if t.MustRetry() {
						tasks = append(tasks, t.Number)
					}
				}
			}
			logs, err := cluster.Logs(run, s, tasks, merge, lines)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(logs)
			}
			return printLogs(logs)
		},
	}
	f := c.Flags()
	f.IntVar(&number, "submission", 0, "which submission (default: the last)")
	f.IntSliceVar(&tasks, "task", nil, "numbers of the tasks")
	f.BoolVar(&merge, "merge", false, "print the log of the merge")
	f.IntVar(&lines, "lines", 20, "number of lines from the end of each log")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printLogs(logs []cluster.Log) error {
	out := bufio.NewWriter(os.Stdout)
	for _, l := range logs {
		fmt.Fprintf(out, "==> %s <==\n", l.File)
		for _, line := range l.Lines {
			fmt.Fprintln(out, line)
		}
		fmt.Fprintln(out)
	}
	if len(logs) == 0 {
		fmt.Fprintln(out, "no task is to be retried: use --task or --merge for other logs")
	}
	return out.Flush()
}
