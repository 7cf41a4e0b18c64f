//go:build unix

package supervise

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	parentVariable  = "NOETHER_PARENT"  // process ID of the parent
	crashedVariable = "NOETHER_CRASHED" // JSON of Worker.crashed
)

// Files of a child, after standard input, output and error. The last is a pipe to the parent, since
// Go's runtime and native code write their crash reports there.
const (
	stderrFile = 3 + iota
	notesFile
	lifeFile // a pipe that ends when the parent ends
)

// Run starts this program again if supervised says that its arguments need it, and waits for it.
// Then done is set, and code is the exit code. In the child, and if no child is needed, it returns
// the Worker, which is nil without a parent.
func Run(supervised func(args []string) bool) (w *Worker, code int, done bool) {
	if os.Getenv(parentVariable) == strconv.Itoa(os.Getppid()) {
		return newWorker(), 0, false
	}
	if !supervised(os.Args[1:]) {
		return nil, 0, false
	}
	code, err := supervise()
	if err != nil {
		fmt.Fprintf(os.Stderr, "noether: %v\n", err)
		code = 1
	}
	return nil, code, true
}

func newWorker() *Worker {
	w := &Worker{notes: os.NewFile(notesFile, "notes"), crashed: map[string]string{}}
	_ = json.Unmarshal([]byte(os.Getenv(crashedVariable)), &w.crashed) // as the parent has written it
	os.Unsetenv(parentVariable)
	os.Unsetenv(crashedVariable)
	reports := os.Stderr // only the runtime and native code write to it from here on
	os.Stderr = os.NewFile(stderrFile, os.Stderr.Name())
	life := os.NewFile(lifeFile, "life")
	for _, f := range []*os.File{w.notes, os.Stderr, life} {
		syscall.CloseOnExec(int(f.Fd()))
	}
	go func() {
		_, _ = life.Read(make([]byte, 1)) // nothing is written: it returns when the parent has ended
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		// A file that nobody refers to is closed by the garbage collector, and another one gets its
		// number.
		runtime.KeepAlive(reports)
	}()
	return w
}

// forwarded are the signals that the child gets too, in case that only the parent got them.
var forwarded = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT}

// supervise runs children until one does not crash on a model that did not crash an earlier one.
func supervise() (code int, err error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, forwarded...)
	go exitWithReader()
	crashed := map[string]string{}
	for {
		c, err := start(crashed, signals)
		if err != nil {
			return 0, fmt.Errorf("starting a process for the work: %w", err)
		}
		models := c.blamed()
		maps.DeleteFunc(models, func(m, _ string) bool { return crashed[m] != "" })
		if len(models) > 0 {
			maps.Copy(crashed, models)
			continue
		}
		status := c.state.Sys().(syscall.WaitStatus)
		if cause, crash := c.report.cause(); crash && lacksMemory.MatchString(c.report.held.String()) {
			return 1, fmt.Errorf("the process has no more memory%s: %s", addressSpace(), cause)
		}
		c.report.release()
		if !status.Signaled() {
			return status.ExitStatus(), nil
		}
		signal.Reset()
		_ = syscall.Kill(os.Getpid(), status.Signal())
		time.Sleep(time.Second)                // another thread may get it a moment later
		return 128 + int(status.Signal()), nil // the signal is ignored
	}
}

// exitWithReader ends this process, and with it the child, when nobody reads its standard error any
// more, as after a kill of the program that started it. The child does not end by itself: Go ends a
// program that writes to a closed pipe only if that is file 1 or 2, and the child writes its
// messages to another.
func exitWithReader() {
	poll := []unix.PollFd{{Fd: 2}}
	for {
		_, err := unix.Poll(poll, -1)
		switch {
		case err == unix.EINTR:
		case err == nil && poll[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0:
			os.Exit(128 + int(unix.SIGPIPE))
		default: // not a file that can be waited for
			return
		}
	}
}

// A child is a process that has ended.
type child struct {
	state       *os.ProcessState
	working     []string // models that the engine worked on
	report      *report
	outOfMemory bool // the system killed a process for lack of memory meanwhile
}

func start(crashed map[string]string, signals <-chan os.Signal) (*child, error) {
	notes, err := newNotes()
	if err != nil {
		return nil, err
	}
	defer notes.Close()
	life, alive, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer alive.Close()
	defer life.Close()
	list, err := json.Marshal(crashed)
	if err != nil {
		return nil, err
	}
	path, err := executable()
	if err != nil {
		return nil, err
	}
	c := &child{report: &report{}}
	cmd := exec.Command(path)
	cmd.Args = os.Args
	cmd.Env = append(os.Environ(), parentVariable+"="+strconv.Itoa(os.Getpid()), crashedVariable+"="+string(list))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, c.report
	cmd.ExtraFiles = []*os.File{os.Stderr, notes, life}
	killed := memoryKills()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for running := true; running; {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s)
		case err := <-ended:
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				return nil, err
			}
			running = false
		}
	}
	c.state, c.outOfMemory = cmd.ProcessState, memoryKills() > killed
	c.working, err = readNotes(notes)
	return c, err
}

// executable returns the running program, also if its file was replaced meanwhile.
func executable() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// blamed returns the models on which the engine worked when the process crashed, with the cause, or
// nil if it ended otherwise: in order, by a signal of the user, or by a panic of the program.
func (c *child) blamed() map[string]string {
	status := c.state.Sys().(syscall.WaitStatus)
	const exitOfGo = 2 // of Go's runtime after a crash report
	cause, crash := c.report.cause()
	switch {
	case crash && (status.Signaled() || status.ExitStatus() == exitOfGo):
	case status.Signaled() && status.Signal() == syscall.SIGKILL && c.outOfMemory:
		cause = "the system killed it for lack of memory"
	case status.Signaled() && faults[status.Signal()]:
		cause = status.Signal().String()
	default:
		return nil
	}
	models := map[string]string{}
	for _, m := range c.working {
		models[m] = cause
	}
	return models
}

// faults are the signals of a process that crashes.
var faults = map[syscall.Signal]bool{syscall.SIGSEGV: true, syscall.SIGBUS: true, syscall.SIGFPE: true, syscall.SIGILL: true,
	syscall.SIGABRT: true, syscall.SIGTRAP: true, syscall.SIGSYS: true}

// A report is what native code and Go's runtime write to standard error. It passes on what comes
// before a crash report.
type report struct {
	held bytes.Buffer // from the crash report on
}

// crashReport matches the first line of a crash report of Go's runtime or of native code. A panic
// is the program's own.
var crashReport = regexp.MustCompile(`(?m)^(SIG[A-Z]+: .*|fatal error: .*|runtime: .*|runtime/cgo: .*|terminate called .*|panic: .*)$`)

// lacksMemory matches the crash reports of a process that got no more memory or threads.
var lacksMemory = regexp.MustCompile(`(?m)^(fatal error: (runtime: )?(out of memory|cannot allocate memory|failed to reserve)|runtime: (out of memory|cannot allocate|failed to create new OS thread)|runtime/cgo: pthread_create failed|terminate called .*bad_alloc)`)

// addressSpace tells the limit of the address space, if there is one.
func addressSpace() string {
	limit := unix.Rlimit{}
	if err := unix.Getrlimit(unix.RLIMIT_AS, &limit); err != nil || limit.Cur == unix.RLIM_INFINITY {
		return ""
	}
	return fmt.Sprintf(", of the %.1f GB that ulimit -v allows", float64(limit.Cur)/1e9)
}

const longestReport = 1 << 20 // bytes

func (r *report) Write(p []byte) (int, error) {
	rest := p
	if r.held.Len() == 0 {
		before := p
		if at := crashReport.FindIndex(p); at != nil {
			before, rest = p[:at[0]], p[at[0]:]
		} else {
			rest = nil
		}
		_, _ = os.Stderr.Write(before)
	}
	r.held.Write(rest[:min(len(rest), longestReport-r.held.Len())])
	return len(p), nil
}

// cause returns the first line of a crash report. crash is not set without one, for a panic, and
// for the stacks that a user has asked for.
func (r *report) cause() (text string, crash bool) {
	text, _, _ = strings.Cut(r.held.String(), "\n")
	return text, text != "" && !strings.HasPrefix(text, "panic: ") && !strings.HasPrefix(text, "SIGQUIT: ")
}

// release passes on the crash report of a child that no other one follows.
func (r *report) release() { _, _ = os.Stderr.Write(r.held.Bytes()) }
