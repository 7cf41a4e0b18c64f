package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/study/spec"
)

// A Profile holds the settings of a cluster that do not change from study to study. Flags of the
// command take precedence.
type Profile struct {
	Partition   string            `key:"partition" json:"partition,omitempty" doc:"Slurm partition; default: the cluster's default"`
	Account     string            `key:"account" json:"account,omitempty" doc:"account to charge"`
	QOS         string            `key:"qos" json:"qos,omitempty" doc:"quality of service"`
	Time        Duration          `key:"time" json:"time,omitempty" doc:"time limit of a task, such as 2h or 1-12:00:00; default: twice the measured cost plus ten minutes"`
	Memory      spec.Size         `key:"memory" json:"memory,omitempty" doc:"memory of a task, such as 8GiB; default: 1.5 times the measured peak plus 512MiB"`
	CPUs        int               `key:"cpus-per-task" json:"cpus_per_task,omitempty" default:"4" min:"1" max:"4096" doc:"cores of a task"`
	GPUs        string            `key:"gpus" json:"gpus,omitempty" doc:"GPUs of a task: a number, or a type and a number such as a100:1"`
	Device      string            `key:"device" json:"device,omitempty" enum:"cpu|auto|webgpu|cuda|tensorrt|openvino" default:"cpu" doc:"device of the engine"`
	Tasks       int               `key:"tasks" json:"tasks,omitempty" min:"1" max:"100000" doc:"number of tasks; default: tasks of about an hour each"`
	Throttle    int               `key:"throttle" json:"throttle,omitempty" min:"1" doc:"largest number of tasks that run at once"`
	Program     string            `key:"program" json:"program,omitempty" doc:"path of noether on the nodes; default: the path of this program"`
	Container   string            `key:"container" json:"container,omitempty" doc:"command before the program, such as apptainer exec --nv noether.sif"`
	Modules     []string          `key:"modules" json:"modules,omitempty" doc:"environment modules to load before the program runs"`
	Setup       []string          `key:"setup" json:"setup,omitempty" doc:"shell commands to run before the program"`
	Environment map[string]string `key:"environment" json:"environment,omitempty" doc:"environment variables of the program"`
	Directives  []string          `key:"directives" json:"directives,omitempty" doc:"additional sbatch options, such as --exclusive"`
	Warning     Duration          `key:"warning" json:"warning,omitempty" doc:"time before the time limit at which a task gets the signal to save and queue itself again; default: 2m"`
	SaveEvery   Duration          `key:"save-every" json:"save_every,omitempty" doc:"interval at which a task saves its state; default: 1m"`
	Tries       int               `key:"tries" json:"tries,omitempty" default:"3" min:"1" max:"100" doc:"largest number of starts of a task that is killed, the first one included"`
	Requeues    int               `key:"requeues" json:"requeues,omitempty" default:"20" min:"1" max:"1000" doc:"number of times that a task queues itself again when it reaches its time limit"`
	Kubernetes  KubernetesProfile `key:"kubernetes" json:"kubernetes,omitzero" doc:"settings of Kubernetes"`
}

// A KubernetesProfile holds the settings that only Kubernetes has.
type KubernetesProfile struct {
	Image          string            `key:"image" json:"image,omitempty" doc:"container image that contains noether"`
	Namespace      string            `key:"namespace" json:"namespace,omitempty" doc:"namespace of the jobs"`
	Claim          string            `key:"claim" json:"claim,omitempty" doc:"persistent volume claim (ReadWriteMany) that holds models, data and the run folder"`
	Mount          string            `key:"mount" json:"mount,omitempty" doc:"path at which the claim is mounted; it must be the same on the machine that submits"`
	ServiceAccount string            `key:"service-account" json:"service_account,omitempty" doc:"service account of the pods"`
	PullSecret     string            `key:"pull-secret" json:"pull_secret,omitempty" doc:"pull secret of the image"`
	NodeSelector   map[string]string `key:"node-selector" json:"node_selector,omitempty" doc:"labels of the nodes"`
}

// LoadProfile reads a profile. If path is empty it reads noether/cluster.yaml in the user's
// configuration folder, or returns the default profile if there is none.
func LoadProfile(path string) (Profile, error) {
	isDefault := path == ""
	if isDefault {
		dir, err := os.UserConfigDir()
		if err != nil {
			return ParseProfile("", nil)
		}
		path = filepath.Join(dir, "noether", "cluster.yaml")
	}
	data, err := config.ReadFile(path)
	if isDefault && errors.Is(err, fs.ErrNotExist) {
		return ParseProfile("", nil)
	}
	if err != nil {
		return Profile{}, fmt.Errorf("reading the profile: %w", err)
	}
	return ParseProfile(path, data)
}

// ParseProfile parses a profile; file is named in errors. Empty text gives the default profile.
func ParseProfile(file string, data []byte) (Profile, error) {
	var p Profile
	if len(strings.TrimSpace(string(data))) == 0 {
		data = []byte("{}")
	}
	node, err := config.Parse(file, data, nil)
	if err == nil {
		err = config.Decode(node, &p)
	}
	if err == nil {
		err = p.Check()
	}
	return p, err
}

// Patterns of the texts that Check accepts as names of the cluster (such as an account), as GPUs
// and as names of environment variables.
var (
	word     = regexp.MustCompile(`^[\w.,:@+/=-]*$`)
	gpuWord  = regexp.MustCompile(`^(|[1-9][0-9]{0,2}|[\w.-]+:[1-9][0-9]{0,2})$`)
	variable = regexp.MustCompile(`^[A-Za-z_]\w*$`)
)

// Check returns an error for numbers out of range, and for texts that would change the structure of
// the script or of the manifest.
func (p Profile) Check() error {
	k := p.Kubernetes
	for key, v := range map[string]string{"partition": p.Partition, "account": p.Account, "qos": p.QOS,
		"kubernetes: namespace": k.Namespace, "kubernetes: claim": k.Claim, "kubernetes: service-account": k.ServiceAccount,
		"kubernetes: pull-secret": k.PullSecret, "kubernetes: image": k.Image} {
		if !word.MatchString(v) {
			return fmt.Errorf("%s: %q is not a name: use letters, digits and . , : @ + / = - _", key, v)
		}
	}
	if !gpuWord.MatchString(p.GPUs) {
		return fmt.Errorf("gpus: %q is not a number of GPUs: write 1, or a kind and a number such as a100:1", p.GPUs)
	}
	for name := range p.Environment {
		if !variable.MatchString(name) {
			return fmt.Errorf("environment: %q is not the name of a variable", name)
		}
	}
	for _, v := range slices.Concat([]string{p.Container, p.Program}, p.Directives, p.Modules, p.Setup) {
		if strings.ContainsAny(v, "\n\r\x00") {
			return fmt.Errorf("%q has more than one line: write one entry for each line", v)
		}
	}
	for _, d := range p.Directives {
		if !strings.HasPrefix(d, "-") {
			return fmt.Errorf("directives: %q is not an option of sbatch: write --exclusive, for example", d)
		}
	}
	if p.CPUs < 1 || p.Tries < 1 || p.Requeues < 0 || p.Tasks < 0 || p.Throttle < 0 {
		return errors.New("cpus-per-task and tries must be at least 1, and no number may be negative")
	}
	return nil
}

// A Duration is a length of time. In YAML and on the command line it is written as in Go (2h30m) or
// as in Slurm (1-12:00:00).
type Duration time.Duration

var slurmTime = regexp.MustCompile(`^(?:(\d{1,3})-)?(\d{1,4}):(\d{1,2})(?::(\d{1,2}))?$`)

// ParseDuration parses a duration of up to a year.
func ParseDuration(text string) (Duration, error) {
	if d, err := time.ParseDuration(text); err == nil && d > 0 && d <= 366*24*time.Hour {
		return Duration(d), nil
	}
	bad := fmt.Errorf("%q is not a duration: write 2h30m, or 1-12:00:00 for a day and a half", text)
	m := slurmTime.FindStringSubmatch(text)
	if m == nil {
		return 0, bad
	}
	part := func(i int, unit time.Duration) time.Duration {
		n, _ := strconv.Atoi(m[i])
		return time.Duration(n) * unit
	}
	// Slurm reads days-hours:minutes:seconds; without days, two numbers are minutes:seconds.
	d := part(1, 24*time.Hour) + part(2, time.Hour) + part(3, time.Minute) + part(4, time.Second)
	if m[1] == "" && m[4] == "" {
		d = part(2, time.Minute) + part(3, time.Second)
	}
	if d <= 0 || d > 366*24*time.Hour {
		return 0, bad
	}
	return Duration(d), nil
}

// DecodeNode implements config.Decoder.
func (d *Duration) DecodeNode(n *config.Node) error {
	text, err := n.Scalar()
	if err != nil {
		return err
	}
	v, err := ParseDuration(text)
	if err != nil {
		return n.Errorf("%w", err)
	}
	*d = v
	return nil
}

// JSONSchema implements config.Schemer.
func (Duration) JSONSchema() map[string]any { return map[string]any{"type": "string"} }

func (d Duration) String() string { return time.Duration(d).String() }

// or returns the duration, or other if d is not positive.
func (d Duration) or(other time.Duration) time.Duration {
	if d > 0 {
		return time.Duration(d)
	}
	return other
}

// slurmDuration formats a duration for Slurm, rounded up to whole minutes.
func slurmDuration(d time.Duration) string {
	m := int((d + time.Minute - 1) / time.Minute)
	return fmt.Sprintf("%d-%02d:%02d:00", m/(24*60), m/60%24, m%60)
}
