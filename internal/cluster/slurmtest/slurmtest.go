//go:build linux

// Package slurmtest runs a real Slurm (the job scheduler of compute clusters) on this machine for a
// test: a controller, a node and an authentication service, in a folder of the test and on free
// ports. It needs root. Missing programs are installed by apt-get. The test is skipped without
// root, if programs are still missing, if a part of Slurm does not start within 30 seconds, or if
// the environment variable NOETHER_SLURM is "off".
//
//	c := slurmtest.Start(t)
//	t.Setenv("SLURM_CONF", c.Conf) // sbatch and the others now use this cluster
package slurmtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A Cluster is a running Slurm of one node.
type Cluster struct {
	Conf string // path of slurm.conf; programs find the cluster by it, in SLURM_CONF

	t          testing.TB
	dir        string
	controller *daemon
}

// programs must be on the PATH.
var programs = []string{"munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "sinfo"}

// Start starts a cluster that ends with the test.
func Start(t testing.TB) *Cluster {
	t.Helper()
	if os.Getenv("NOETHER_SLURM") == "off" {
		t.Skip("NOETHER_SLURM is off")
	}
	if os.Getuid() != 0 {
		t.Skip("starting a Slurm needs root")
	}
	if missing := install(t); missing != "" {
		t.Skipf("%s is not installed, and apt-get does not install it", missing)
	}
	c := &Cluster{t: t, dir: t.TempDir()}
	c.Conf = filepath.Join(c.dir, "slurm.conf")
	c.configure()
	munge := func(name string) string { return filepath.Join(c.dir, "munge", name) }
	c.start("munged", "--foreground", "--force", "--key-file="+munge("key"), "--socket="+munge("socket"), "--pid-file="+munge("pid"),
		"--log-file="+munge("log"), "--seed-file="+munge("seed"))
	c.await("munge's socket", func() bool { _, err := os.Stat(munge("socket")); return err == nil })
	c.controller = c.start("slurmctld", "-D", "-f", c.Conf)
	c.start("slurmd", "-D", "-f", c.Conf)
	c.await("an idle node", func() bool {
		out, _ := c.try("sinfo", "--noheader", "--format=%T")
		return strings.HasPrefix(out, "idle")
	})
	t.Cleanup(c.drain)
	return c
}

// install installs missing programs if it may, and returns the first that is still missing.
func install(t testing.TB) string {
	find := func() string {
		for _, p := range programs {
			if _, err := exec.LookPath(p); err != nil {
				return p
			}
		}
		return ""
	}
	if find() == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for _, args := range [][]string{{"update", "-qq"}, {"install", "-y", "-qq", "--no-install-recommends", "slurm-wlm", "munge"}} {
		cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-o", "DPkg::Lock::Timeout=120"}, args...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Logf("apt-get %s: %v: %s", args[0], err, out)
			break
		}
	}
	return find()
}

// configure writes slurm.conf and the key of munge, the authentication service.
func (c *Cluster) configure() {
	host, err := os.Hostname()
	if err != nil {
		c.t.Fatal(err)
	}
	host, _, _ = strings.Cut(host, ".")
	for _, sub := range []string{"state", "spool", "log", "munge"} {
		if err := os.Mkdir(filepath.Join(c.dir, sub), 0o755); err != nil {
			c.t.Fatal(err)
		}
	}
	key := make([]byte, 1024)
	rand.Read(key)
	if err := os.WriteFile(filepath.Join(c.dir, "munge", "key"), key, 0o400); err != nil {
		c.t.Fatal(err)
	}
	ports := freePorts(c.t, 2)
	text := fmt.Sprintf(`ClusterName=test
SlurmctldHost=%[1]s(127.0.0.1)
SlurmUser=root
SlurmctldPort=%[3]d
SlurmdPort=%[4]d
AuthType=auth/munge
AuthInfo=socket=%[2]s/munge/socket
StateSaveLocation=%[2]s/state
SlurmdSpoolDir=%[2]s/spool
SlurmctldPidFile=%[2]s/slurmctld.pid
SlurmdPidFile=%[2]s/slurmd.pid
SlurmctldLogFile=%[2]s/log/slurmctld
SlurmdLogFile=%[2]s/log/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=1
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
KillWait=2
ReturnToService=2
NodeName=%[1]s NodeAddr=127.0.0.1 CPUs=%[5]d RealMemory=%[6]d State=UNKNOWN
PartitionName=main Nodes=%[1]s Default=YES MaxTime=INFINITE State=UP
`, host, c.dir, ports[0], ports[1], runtime.NumCPU(), 2000) // MiB of memory
	if err := os.WriteFile(c.Conf, []byte(text), 0o666); err != nil {
		c.t.Fatal(err)
	}
}

// freePorts returns unused ports.
func freePorts(t testing.TB, n int) []int {
	var out []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		out = append(out, l.Addr().(*net.TCPAddr).Port)
	}
	return out
}

// A daemon is a program that runs until the test ends.
type daemon struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the program has ended
}

func (c *Cluster) start(name string, args ...string) *daemon {
	c.t.Helper()
	d := &daemon{}
	c.run(d, name, args...)
	c.t.Cleanup(func() {
		syscall.Kill(-d.cmd.Process.Pid, syscall.SIGKILL) // and what it has forked
		<-d.ended
	})
	return d
}

// run runs a daemon's program, for the first time or again.
func (c *Cluster) run(d *daemon, name string, args ...string) {
	c.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = c.Env()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		c.t.Skipf("%s does not start: %v", name, err)
	}
	d.cmd, d.ended = cmd, make(chan struct{})
	go func(ended chan struct{}) {
		cmd.Wait()
		close(ended)
	}(d.ended)
}

// Env returns the environment in which programs find the cluster.
func (c *Cluster) Env(more ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "SLURM_") && !strings.HasPrefix(v, "SBATCH_") {
			env = append(env, v)
		}
	}
	return append(append(env, "SLURM_CONF="+c.Conf), more...)
}

// Run runs one of Slurm's commands.
func (c *Cluster) Run(name string, args ...string) string {
	c.t.Helper()
	out, err := c.try(name, args...)
	if err != nil {
		c.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func (c *Cluster) try(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // not t.Context(), which has ended in a cleanup
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = c.Env()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// RestartController stops the controller, which saves its jobs, and starts another after a moment.
func (c *Cluster) RestartController() {
	c.t.Helper()
	c.restart(syscall.SIGTERM)
}

// KillController kills the controller and starts another after a moment. A controller saves its
// jobs every few seconds; the new one does not know what has changed after that.
func (c *Cluster) KillController() {
	c.t.Helper()
	c.restart(syscall.SIGKILL)
}

func (c *Cluster) restart(signal syscall.Signal) {
	c.t.Helper()
	c.controller.cmd.Process.Signal(signal)
	<-c.controller.ended
	time.Sleep(500 * time.Millisecond)
	c.run(c.controller, "slurmctld", "-D", "-f", c.Conf)
	c.await("the controller", func() bool { _, err := c.try("squeue", "--noheader"); return err == nil })
}

// await waits until a condition holds. It skips the test if that takes more than 30 seconds.
func (c *Cluster) await(what string, holds func() bool) {
	c.t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			log, _ := os.ReadFile(filepath.Join(c.dir, "log", "slurmctld"))
			c.t.Skipf("Slurm does not run here: no %s after 30 s\n%s", what, log)
		}
	}
}

// drain cancels the jobs that still run, and waits until they have ended, for at most 10 seconds.
func (c *Cluster) drain() {
	c.try("scancel", "--quiet", "--user=root")
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if out, err := c.try("squeue", "--noheader"); err != nil || strings.TrimSpace(out) == "" {
			return
		}
	}
}
