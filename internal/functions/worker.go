package functions

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/noether-ml/noether/engine/oip"
	"github.com/noether-ml/noether/internal/release"
)

// The uses of a function in a study: the lists that have it.
const (
	Models     = "models"
	Transforms = "transforms"
	Measures   = "measures"
)

// A Program is what one worker, a Python process, serves: the function that makes a model, or that
// is a transformation or a measure.
type Program struct {
	Use   string `json:"use"`
	Name  string `json:"function"` // package.module:function
	Input []int  `json:"input"`    // shape of a sample of a model; nil: the function says it, or the model
}

// An Interpreter runs workers.
type Interpreter struct {
	Executable string            // of Python
	Path       []string          // folders with the user's modules
	Log        func(text string) // is told what the functions print; nil: nobody is
}

// Workers are running processes.
type Workers struct{ all []*worker }

// A worker serves one program.
type worker struct {
	program Program
	process *exec.Cmd
	stdin   io.Closer

	address string // of the socket
	digest  string // hash of the source code

	answered <-chan struct{} // is closed when address and digest are set, or the process has ended

	mutex sync.Mutex
	ended chan struct{} // is closed when the process has ended
	err   error         // why it has
	last  string        // line that it has printed
}

// state is what calls of functions look up: the workers of this process, and the context that ends
// calls.
var state struct {
	sync.Mutex
	workers map[[2]string]*worker // by use and name
	context context.Context
}

// EndWith sets the context that ends calls of functions.
func EndWith(ctx context.Context) {
	state.Lock()
	defer state.Unlock()
	state.context = ctx
}

func callContext() context.Context {
	state.Lock()
	defer state.Unlock()
	if state.context == nil {
		return context.Background()
	}
	return state.context
}

// find returns the worker of a function, or nil.
func find(use, name string) *worker {
	state.Lock()
	defer state.Unlock()
	return state.workers[[2]string{use, name}]
}

func (p Program) key() [2]string { return [2]string{p.Use, p.Name} }

// Start starts a process for each program, and returns when all serve it. A program that cannot be
// loaded is no error: its calls fail.
func Start(ctx context.Context, with Interpreter, programs []Program) (*Workers, error) {
	w := &Workers{}
	for _, p := range programs {
		if find(p.Use, p.Name) != nil {
			continue
		}
		one, err := start(with, p)
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
		w.all = append(w.all, one)
		state.Lock()
		if state.workers == nil {
			state.workers = map[[2]string]*worker{}
		}
		state.workers[p.key()] = one
		state.Unlock()
	}
	for _, one := range w.all {
		select {
		case <-one.answered:
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), w.Close())
		}
	}
	return w, nil
}

// Digest returns the hash of the source code of a function that a worker serves, and of the
// versions of its packages; "" if there is no worker or the function could not be loaded.
func Digest(use, name string) string {
	if w := find(use, name); w != nil {
		return w.digest
	}
	return ""
}

// Close ends the processes.
func (w *Workers) Close() error {
	state.Lock()
	for _, one := range w.all {
		delete(state.workers, one.program.key())
	}
	state.Unlock()
	for _, one := range w.all {
		one.end(errors.New("the study has ended"))
	}
	for _, one := range w.all {
		<-one.ended
	}
	return nil
}

// bootstrap runs the module of the Python package that serves a program. The package beside this
// program is used if the interpreter has none.
const bootstrap = `import sys
sys.path.append(sys.argv[1])
try:
    from ` + release.Import + `._worker import main
except ImportError as e:
    sys.exit(f"the Python package ` + release.Import + ` cannot be imported: {e}")
main()`

// packageFolder returns the folder of the Python package that comes with this program, or ".".
func packageFolder() string {
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return "."
	}
	above := filepath.Dir(filepath.Dir(program))
	for _, folder := range []string{filepath.Join(above, "python"), filepath.Dir(above)} { // in a checkout; in the wheel
		if _, err := os.Stat(filepath.Join(folder, release.Import, "_worker.py")); err == nil {
			return folder
		}
	}
	return "."
}

func start(with Interpreter, p Program) (*worker, error) {
	w := &worker{program: p, ended: make(chan struct{})}
	w.process = exec.Command(with.Executable, "-c", bootstrap, packageFolder())
	separate(w.process)
	stdin, err := w.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := w.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := w.process.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := w.process.Start(); err != nil {
		return nil, fmt.Errorf("function %s: %s cannot be started: %w; the key python of the study sets another interpreter", p.Name, with.Executable, err)
	}
	w.stdin = stdin
	request, err := json.Marshal(struct {
		Program
		Path []string `json:"path"`
	}{p, with.Path})
	if err == nil {
		_, err = stdin.Write(append(request, '\n'))
	}
	answered := make(chan struct{})
	w.answered = answered
	var printing sync.WaitGroup
	printing.Go(func() { w.print(stderr, with.Log) })
	go func() {
		w.answer(stdout)
		close(answered)
		_, _ = io.Copy(io.Discard, stdout)
		printing.Wait()
		err := w.process.Wait()
		w.mutex.Lock()
		if w.err == nil {
			w.err = fmt.Errorf("its Python process ended: %s", w.reason(err))
		}
		w.mutex.Unlock()
		close(w.ended)
	}()
	return w, err
}

// reason returns why the process has ended, with the error of exec.Cmd.Wait. What it prints before it
// serves the program says why it does not; later lines may have nothing to do with the end.
func (w *worker) reason(err error) string {
	status := "exit status 0"
	if err != nil {
		status = err.Error()
	}
	switch {
	case w.last == "":
		return status
	case w.address == "":
		return w.last
	}
	return fmt.Sprintf("%s (it last printed: %s)", status, w.last)
}

// answer reads the address and the digest, which the process prints when it serves the program.
func (w *worker) answer(stdout io.Reader) {
	var got struct{ Address, Digest string }
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err == nil && json.Unmarshal(line, &got) == nil {
		w.address, w.digest = got.Address, got.Digest
	}
}

// mostLines bounds the lines of a process that are passed on.
const mostLines = 4

// print passes on what the process prints. Standard output of functions is joined to its standard
// error.
func (w *worker) print(from io.Reader, log func(string)) {
	lines := bufio.NewReader(from)
	for count := 1; ; count++ {
		line, err := lines.ReadBytes('\n')
		if text := string(bytes.TrimRight(line, "\r\n ")); text != "" {
			w.mutex.Lock()
			w.last = strings.ToValidUTF8(text, "?")
			w.mutex.Unlock()
			switch {
			case log == nil || count > mostLines:
			case count == mostLines:
				log(w.program.Name + " prints more lines, which are not shown")
			default:
				log(w.program.Name + " prints: " + text)
			}
		}
		if err != nil {
			return
		}
	}
}

// gone returns why the process has ended, or nil.
func (w *worker) gone() error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.err
}

// end ends the process, because of err.
func (w *worker) end(err error) {
	w.mutex.Lock()
	if w.err == nil {
		w.err = err
	}
	w.mutex.Unlock()
	_ = w.stdin.Close() // it then ends by itself, unless a function holds the interpreter
	go func() {
		select {
		case <-w.ended:
		case <-time.After(time.Second):
			kill(w.process)
		}
	}()
}

// open returns the model that a process serves.
func (w *worker) open(ctx context.Context, o oip.Options) (*oip.Network, error) {
	if err := w.gone(); err != nil {
		return nil, err
	}
	if w.address == "" {
		<-w.ended
		return nil, w.gone()
	}
	o.Gone, o.Name = w.gone, w.program.Name
	o.Hangs = func(err error) { w.end(err) }
	return oip.Open(ctx, w.address+"/v2/models/"+w.program.Name, o)
}

// OpenModel returns the model of a function of a study. It has the address under which Start has
// begun to serve it.
func OpenModel(ctx context.Context, name string, o oip.Options) (*oip.Network, error) {
	w := find(Models, name)
	if w == nil {
		return nil, fmt.Errorf("%s is a function of Python, which this command does not run", name)
	}
	net, err := w.open(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return net, nil
}
