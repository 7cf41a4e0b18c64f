// Command noether measures how each layer of a neural network changes when its input is
// transformed.
//
//	noether demo                        compares three small trained networks that come with the program
//	noether init MODEL DATA > study.yaml
//	noether run study.yaml -o runs/one  scores.csv, scores.parquet, report.html
//
// It exits with 0 on success, 1 on failure, 2 on wrong usage, 3 if a condition is met or a model
// fails a policy, 4 if data do not suffice for a policy, and 75 if a task of a cluster was stopped
// before its end.
//
// Most files have one subcommand each: its flags and its output. The others have what several of
// them share.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/noether-ml/noether/internal/cluster"
	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/supervise"
)

func main() {
	w, code, done := supervise.Run(runsModels)
	if done {
		os.Exit(code)
	}
	worker = w
	machine.BoundGarbage(0) // run sets the memory bound of the study
	ctx, stop := interruptible()
	defer stop()
	os.Exit(exitCode(execute(ctx, os.Args[1:])))
}

// worker notes which models the engine works on, for the process that waits for this one.
var worker *supervise.Worker

// runsModels reports whether the command of some arguments runs models, so that it needs a child
// process.
func runsModels(args []string) bool {
	c, _, err := newRoot().Find(args)
	if err != nil {
		return false
	}
	for c.HasParent() && c.Parent().HasParent() {
		c = c.Parent()
	}
	return slices.Contains([]string{"train", "demo", "init", "run", "merge", "inspect", "invert", "forward", "extract", "check", "diff", "parity", "cluster"}, c.Name())
}

func execute(ctx context.Context, args []string) error {
	root := newRoot()
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "noether",
		Short: "Measure what each layer of a neural network keeps, moves or throws away when its input is transformed",
		Long: `Noether measures what each layer of a neural network keeps, moves or throws away when its
input is transformed: how invariant and equivariant it is, and how stable the predictions are.
It takes ONNX models and data, and writes scores with intervals, tables and a report.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          usageArgs(cobra.NoArgs),
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "output" { // another name of the flag -o, --out of all commands
			name = "out"
		}
		return pflag.NormalizedName(name)
	})
	engine := addEngineFlags(root)
	root.AddCommand(
		trainCommand(engine),
		demoCommand(engine),
		initCommand(engine),
		runCommand(engine),
		mergeCommand(engine),
		inspectCommand(engine),
		invertCommand(engine),
		compareCommand(),
		gradCommand(engine),
		forwardCommand(engine),
		extractCommand(engine),
		correlateCommand(),
		breakingPointCommand(),
		benchmarkCommand(),
		failuresCommand(),
		policyCommand(),
		diffCommand(engine),
		parityCommand(engine),
		reportCommand(),
		plotCommand(),
		exportCommand(),
		serveCommand(),
		varyCommand(),
		checkCommand(engine),
		clusterCommand(engine),
		schemaCommand(),
		doctorCommand(engine),
		versionCommand(),
		manualsCommand(),
		preprocessingCommand(),
		imageFilesCommand(),
	)
	root.CompletionOptions.HiddenDefaultCmd = true
	return root
}

// flagError adds the nearest flag to the error of an unknown one.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		if near := config.Nearest("--"+unknown.GetSpecifiedName(), names); near != "" {
			err = fmt.Errorf("%w; did you mean %q?", err, near)
		}
	}
	return &usageError{c, err}
}

// A usageError is an error in the arguments of a command.
type usageError struct {
	command *cobra.Command
	error
}

func usagef(c *cobra.Command, format string, args ...any) error {
	return &usageError{c, fmt.Errorf(format, args...)}
}

// usageArgs turns the error of an argument check into a usageError.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if check(c, args) == nil {
			return nil
		}
		if c.HasSubCommands() {
			var names []string
			for _, sub := range c.Commands() {
				names = append(names, sub.Name())
			}
			return usagef(c, "unknown command %q; %s", args[0], config.Suggest(args[0], names))
		}
		if operands := strings.TrimPrefix(c.Use, c.Name()); operands != "" {
			return usagef(c, "%s takes%s", c.Name(), operands)
		}
		return usagef(c, "%s takes no arguments", c.Name())
	}
}

// exitCode prints an error and returns the exit code.
func exitCode(err error) int {
	var usage *usageError
	var logged *loggedError
	var gate *gateError
	var undecided *undecidedError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &gate):
		fmt.Fprintln(stderr, "noether: "+oneLine(err.Error()))
		return gateExit
	case errors.As(err, &undecided):
		fmt.Fprintln(stderr, "noether: "+oneLine(err.Error()))
		return undecidedExit
	case errors.Is(err, cluster.ErrStopped):
		fmt.Fprintln(stderr, "noether: "+oneLine(err.Error()))
		return cluster.ExitStopped
	case errors.As(err, &logged):
		if errors.Is(err, context.Canceled) {
			logged.log.Warn("stopped; run it again to resume from the saved state")
		} else {
			logged.log.Error(oneLine(err.Error()))
		}
		return 1
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "noether: stopped; run it again to resume from the saved state")
		return 1
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "noether: %s (see %s --help)\n", oneLine(err.Error()), usage.command.CommandPath())
		return 2
	default:
		fmt.Fprintln(stderr, "noether: "+oneLine(err.Error()))
		return 1
	}
}

// oneLine joins the lines of a text. Indented lines, such as code to copy, stay lines.
func oneLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	text := lines[0]
	for _, line := range lines[1:] {
		if strings.HasPrefix(line, "  ") {
			text += "\n" + line
		} else {
			text += "; " + line
		}
	}
	return text
}
