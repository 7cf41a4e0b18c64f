package cluster

import (
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
	"time"
)

// mebibyte is the unit of memory of Slurm.
const mebibyte = 1 << 20

//go:embed scripts.tmpl jobs.tmpl
var templateFiles embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"quote": quote,
	"json": func(v any) (string, error) { // JSON is YAML
		raw, err := json.Marshal(v)
		return string(raw), err
	},
}).ParseFS(templateFiles, "*.tmpl"))

// A script holds what the templates of scripts and manifests show.
type script struct {
	Profile
	Number, Tasks          int
	Name, Run, Folder, Log string
	Limit                  string // of the time, for Slurm; "": the default of the partition
	Mebibytes              int64  // of memory; 0: the default of the cluster
	Seconds                int    // between the warning and the time limit
	Save                   time.Duration
	Parallel, Restarts     int
	GPUCount, Mount        string
	Python                 bool // the study runs functions of Python, which was allowed
	User, Group            int
}

// newScript returns the script of the tasks of a submission.
func (s *Submission) newScript(run, study string) script {
	p := s.Profile
	p.Program = cmp.Or(p.Program, "noether")
	out := script{Profile: p, Number: s.Number, Tasks: len(s.Tasks), Python: s.Python, Name: jobName(study), Run: run,
		Folder: folder(run, s.Number), Log: "%a.log", Mebibytes: mebibytes(s.memoryRequest()),
		Seconds: int(p.Warning.or(2 * time.Minute).Seconds()), Save: p.SaveEvery.or(time.Minute)}
	if limit := s.timeLimit(); limit > 0 {
		out.Limit = slurmDuration(limit)
	}
	return out
}

func execute(name string, data script) (string, error) {
	var b strings.Builder
	err := templates.ExecuteTemplate(&b, name, data)
	return b.String(), err
}

// timeLimit returns the time limit of the tasks: that of the profile, else the longest estimate
// with a margin; 0: the default of the partition.
func (s *Submission) timeLimit() time.Duration {
	if s.Profile.Time > 0 {
		return time.Duration(s.Profile.Time)
	}
	var longest float64
	for _, t := range s.Tasks {
		if t.Seconds == 0 {
			return 0 // not all costs were measured
		}
		longest = max(longest, t.Seconds)
	}
	return time.Duration(2*longest*float64(time.Second)) + 10*time.Minute
}

// memoryRequest returns the requested memory of a task, in bytes; 0: the default of the cluster.
func (s *Submission) memoryRequest() int64 {
	if s.Profile.Memory > 0 {
		return int64(s.Profile.Memory)
	}
	var largest int64
	for _, t := range s.Tasks {
		if t.Memory == 0 {
			return 0 // not all costs were measured
		}
		largest = max(largest, t.Memory)
	}
	return largest*3/2 + 512*mebibyte
}

func mebibytes(bytes int64) int64 { return (bytes + mebibyte - 1) / mebibyte }

// Scripts returns the batch scripts of the tasks and of the merge. study is the study's name.
func (Slurm) Scripts(run, study string, s *Submission) (task, merge string, err error) {
	if strings.ContainsAny(run, "%\"'\\`$\n\r") {
		return "", "", fmt.Errorf("the path %q has a character that #SBATCH lines do not allow: rename the folder", run)
	}
	data := s.newScript(run, study)
	if task, err = execute("run", data); err != nil {
		return "", "", err
	}
	data.Name, data.Log, data.Limit = data.Name+"-merge", "merge-%j.log", ""
	if t := s.Profile.Time; t > 0 {
		data.Limit = slurmDuration(time.Duration(t))
	}
	merge, err = execute("merge", data)
	return task, merge, err
}

// Kubernetes writes the manifest of a submission: an Indexed Job with a pod for each task, and a
// Job that waits for the tasks and merges.
type Kubernetes struct{}

// ManifestPath returns the path of the manifest of a submission.
func ManifestPath(run string, number int) string { return folder(run, number, "jobs.yaml") }

// Submit writes the manifest of the new submission s, and the record r, into the run folder.
func (k Kubernetes) Submit(run string, r *Record, s *Submission) error {
	text, err := k.Manifest(run, r.Study, s)
	if err != nil {
		return err
	}
	if err := writeFile(ManifestPath(run, s.Number), text); err != nil {
		return err
	}
	return r.write(run)
}

// Manifest returns the text for kubectl apply; study is the study's name. It is an error if the
// profile lacks the image, claim or mount, or if run is not under the mount.
func (Kubernetes) Manifest(run, study string, s *Submission) (string, error) {
	k := s.Profile.Kubernetes
	mount := filepath.Clean(k.Mount)
	relative, err := filepath.Rel(mount, run)
	switch {
	case k.Image == "" || k.Claim == "" || k.Mount == "":
		return "", errors.New("kubernetes needs image, claim and mount: set them in a profile, under kubernetes")
	case err != nil || !filepath.IsLocal(relative):
		return "", fmt.Errorf("the run folder %s is not under %s, where the claim %s is mounted: choose a folder under it", run, mount, k.Claim)
	}
	data := s.newScript(run, study)
	data.Name, data.Mount, data.Restarts = fmt.Sprintf("%s-%d", data.Name, s.Number), mount, data.Tries-1
	data.Parallel = min(data.Tasks, cmp.Or(data.Throttle, data.Tasks))
	data.GPUCount = data.GPUs[strings.LastIndexByte(data.GPUs, ':')+1:]
	data.User, data.Group = max(0, os.Getuid()), os.Getgid()
	return execute("jobs", data)
}

// quote returns text as one word of the shell.
func quote(text string) string {
	if text != "" && word.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// jobName converts the name of a study to one that all schedulers accept. Kubernetes allows 63
// characters, and a number and "-merge" may follow.
func jobName(study string) string {
	name := notInNames.ReplaceAllString("noether-"+strings.ToLower(study), "-")
	return strings.TrimRight(name[:min(len(name), 50)], "-")
}
