package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/noether-ml/noether/internal/functions"
	"github.com/noether-ml/noether/internal/study"
)

// pythonFlags decide whether a command calls the functions of Python that a study names.
type pythonFlags struct{ allow bool }

func (p *pythonFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&p.allow, "allow-python", false, "call the functions of Python that the study names")
}

// start starts the processes of the functions that a study names, if the user allows it. stop ends
// them. Calls end with ctx.
func (p *pythonFlags) start(ctx context.Context, s *study.Study) (stop func(), err error) {
	functions.EndWith(ctx)
	found := s.Python()
	if len(found) == 0 {
		return func() {}, nil
	}
	var names []string
	var programs []functions.Program
	for _, f := range found {
		if !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
		programs = append(programs, functions.Program{Use: f.Use, Name: f.Name, Input: f.Input})
	}
	with := functions.Interpreter{Executable: s.Interpreter(), Path: s.PythonFolders(), Log: note}
	if !p.allow && !confirmed(ctx, fmt.Sprintf("The study runs Python, with your rights: %s calls %s.\nAllow it?", with.Executable, strings.Join(names, ", "))) {
		return nil, fmt.Errorf("the study runs Python: %s; --allow-python allows it", strings.Join(names, ", "))
	}
	workers, err := functions.Start(ctx, with, programs)
	if err != nil {
		return nil, err
	}
	stop = func() { _ = workers.Close() }
	if err := s.HashPython(functions.Digest); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// confirmed asks a question on a terminal. Elsewhere, and if ctx ends, the answer is no.
func confirmed(ctx context.Context, question string) bool {
	if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stderr.Fd())) {
		return false
	}
	fmt.Fprintf(os.Stderr, "%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case text := <-answer:
		return text == "y" || text == "yes"
	case <-ctx.Done():
		fmt.Fprintln(os.Stderr)
		return false
	}
}
