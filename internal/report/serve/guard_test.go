package serve

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/scores"
)

// secret is the content of a file outside the served folders.
const secret = "content of a file outside"

// TestNothingOutsideIsServed checks that files outside the served folders are not readable through
// symbolic links or crafted URLs. newFolder and finish write the folder of a finished run; its
// run.json is the record of what was measured. ids returns the ids of runs by name.
func TestNothingOutsideIsServed(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	outside := newFolder(t, filepath.Join(base, "outside"), "net").finish()
	outside.write("secret.txt", secret)
	dir := filepath.Join(base, "runs")
	inside := newFolder(t, filepath.Join(dir, "inside"), "net").finish()
	link := func(target, path string) {
		t.Helper()
		if err := os.Symlink(target, path); err != nil {
			t.Skip(err)
		}
	}
	// Links to a run folder outside, absolute and relative.
	link(outside.dir, filepath.Join(dir, "linked"))
	link(filepath.Join("..", "outside"), filepath.Join(dir, "relative"))
	// A run folder whose record is a link to a file outside.
	os.MkdirAll(filepath.Join(dir, "linked-record"), 0o777)
	link(filepath.Join(outside.dir, "run.json"), filepath.Join(dir, "linked-record", "run.json"))
	// Two runs with a file that is a link: the scores cannot be read, and the study is not shown.
	named := newFolder(t, filepath.Join(dir, "named"), "net").finish()
	for name, run := range map[string]*folder{"scores.csv": inside, "study.yaml": named} {
		os.Remove(filepath.Join(run.dir, name))
		link(filepath.Join(outside.dir, "secret.txt"), filepath.Join(run.dir, name))
	}
	url := startServer(t, Options{Dirs: []string{dir}})
	found := ids(t, url, "")
	if len(found) != 2 {
		t.Fatalf("the runs are %v; want runs/inside and runs/named alone", found)
	}
	id, other := found["runs/inside"], found["runs/named"]
	for path, want := range map[string]int{"/": 200, "/runs/" + other: 200, "/runs/" + other + "/report": 200,
		"/runs/" + id: 500, "/runs/" + id + "/report": 500, "/api/v1/runs/" + id + "/scores": 500, "/api/v1/runs/" + id + "/scores.csv": 500,
		"/assets/..%2f..%2fsecret.txt": 404, "/assets/../serve.go": 307, "/runs/..%2f..%2foutside": 404, "/runs/../../outside/secret.txt": 307,
		"/api/v1/runs/%2e%2e/scores": 404, "//outside/secret.txt": 307} {
		status, body, _ := get(t, url+path)
		// newFolder calls the study of the folder outside so.
		if strings.Contains(body, secret) || strings.Contains(body, "study of outside") {
			t.Errorf("%s serves a file outside the folders (status %d)", path, status)
		}
		if status != want {
			t.Errorf("%s: status %d; want %d", path, status, want)
		}
	}
}

// TestHostsAreChecked checks that a request is refused (421 Misdirected Request) if its Host header
// names neither this machine nor one of Options.Hosts.
func TestHostsAreChecked(t *testing.T) {
	t.Parallel()
	url := startServer(t, Options{Dirs: []string{t.TempDir()}, Hosts: []string{"box.lan"}})
	for host, want := range map[string]int{"localhost": 200, "box.lan:7410": 200, "evil.example": 421, "127.0.0.1.evil.example": 421} {
		r, _ := http.NewRequest(http.MethodGet, url, nil)
		r.Host = host
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("Host %s: status %d; want %d", host, res.StatusCode, want)
		}
	}
}

// TestToken checks that every address needs the token. It is accepted in the URL, in a cookie and
// in the header Authorization. With the token in the URL, the answer sets the cookie and redirects.
func TestToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newFolder(t, dir, "net").finish()
	const token = "0123456789abcdef"
	url := startServer(t, Options{Dirs: []string{dir}, Token: token})
	for _, path := range []string{"/", "/api/v1/runs", "/assets/serve.js", "/?token=wrong", "/api/v1/events?token="} {
		if status, body, _ := get(t, url+path); status != http.StatusUnauthorized || strings.Contains(body, "net") && strings.Contains(body, "finished") {
			t.Errorf("%s without the token: status %d; want 401 and no run", path, status)
		}
	}
	// The redirect after sign-in must not lead to another host (an open redirect), nor repeat the
	// token.
	status, _, header := get(t, url+"//evil.example/?token="+token+"&q=a")
	if status != http.StatusSeeOther || strings.HasPrefix(header.Get("Location"), "//") || strings.Contains(header.Get("Location"), token) {
		t.Errorf("sign-in at //evil.example/: status %d to %q; want 303 to a path of this server without the token", status, header.Get("Location"))
	}
	cookie := header.Get("Set-Cookie")
	if !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") {
		t.Errorf("the cookie is %s; want HttpOnly and SameSite=Strict", cookie)
	}
	for name, value := range map[string]string{"Cookie": strings.Split(cookie, ";")[0], "Authorization": "bEARER " + token} {
		r, _ := http.NewRequest(http.MethodGet, url+"/api/v1/runs", nil)
		r.Header.Set(name, value)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("token in the header %s: status %d; want 200", name, res.StatusCode)
		}
	}
}

// TestHeadersAndMethods checks that every response has the security headers, and that POST, PUT and
// DELETE are refused.
func TestHeadersAndMethods(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newFolder(t, dir, "net").finish()
	url := startServer(t, Options{Dirs: []string{dir}})
	id := ids(t, url, "")[filepath.Base(dir)]
	for path, want := range map[string]int{"/": 200, "/runs/" + id: 200, "/nowhere": 404, "/api/v1/runs": 200, "/assets/serve.js": 200, "/compare?run=" + id: 400} {
		status, _, header := get(t, url+path)
		if status != want {
			t.Errorf("%s: status %d; want %d", path, status, want)
		}
		if p := header.Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'none'") || strings.Contains(p, "unsafe") || strings.Contains(p, "http") {
			t.Errorf("%s: policy %q; want default-src 'none' and no unsafe or remote source", path, p)
		}
		if v := header.Get("X-Content-Type-Options"); v != "nosniff" {
			t.Errorf("%s: X-Content-Type-Options is %q; want nosniff", path, v)
		}
		if v := header.Get("Access-Control-Allow-Origin"); v != "" {
			t.Errorf("%s: Access-Control-Allow-Origin is %q; want none", path, v)
		}
	}
	_, report, header := get(t, url+"/runs/"+id+"/report")
	if p := header.Get("Content-Security-Policy"); !strings.Contains(p, "frame-ancestors 'none'") {
		t.Errorf("the report's policy is %q; want frame-ancestors 'none'", p)
	}
	if !strings.Contains(report, `content="default-src &#39;none&#39;; script-src &#39;sha256-`) {
		t.Error("the report has no meta element with a policy that allows its own scripts alone")
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		r, _ := http.NewRequest(method, url+"/api/v1/runs", nil)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: status %d; want 405", method, res.StatusCode)
		}
	}
}

// TestNamesAreEscaped checks that names, which come from untrusted runs, are escaped in HTML.
func TestNamesAreEscaped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const evil = `"><script>alert(1)</script>`
	f := newFolder(t, filepath.Join(dir, `a"><img src=x onerror=alert(1)>`), evil, "../../etc/passwd")
	f.record.Study, f.record.Data[0].Name = evil, evil
	f.record.Failed = []scores.Failure{{Key: "k", Model: evil, Error: evil}}
	f.record.Models[0].Tags = map[string]string{evil: evil}
	f.finish()
	url := startServer(t, Options{Dirs: []string{dir}})
	var id string
	for _, id = range ids(t, url, "") { // the only run
	}
	for path, want := range map[string]int{"/": 200, "/?q=%22%3E%3Cscript%3Ealert(1)": 200, "/runs/" + id: 200, "/runs/" + id + "/report": 200,
		"/compare?all=1&run=" + id + "&model=../../etc/passwd&model=%22%3E%3Cscript%3Ealert(1)%3C/script%3E": 200,
		"/compare?run=%3Cscript%3Ealert(1)": 400, "/runs/%3Cscript%3Ealert(1)%3C%2Fscript%3E": 404} {
		status, body, _ := get(t, url+path)
		if status != want || status == 200 && !strings.Contains(body, "alert(1)") {
			t.Errorf("%s: status %d, want %d, and the name on the page", path, status, want)
		}
		if strings.Contains(body, "<script>alert") || strings.Contains(body, "<img src=x") {
			t.Errorf("%s has a name that is not escaped", path)
		}
	}
}

// A file, a path below a file and a folder that does not exist cannot be served.
func TestFoldersThatCannotBeServed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o666)
	for _, dir := range []string{file, filepath.Join(file, "x"), filepath.Join(t.TempDir(), "none")} {
		if _, err := New(Options{Dirs: []string{dir}}); err == nil || !strings.Contains(err.Error(), "serving") {
			t.Errorf("%s: %v; want an error with \"serving\"", dir, err)
		}
	}
}

// TestDamagedRuns checks that a run with an unreadable record is not listed, and that a run with a
// damaged log of cells is listed, but its page shows an error.
func TestDamagedRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newFolder(t, filepath.Join(dir, "good"), "net").finish()
	unreadable := newFolder(t, filepath.Join(dir, "unreadable"), "net")
	unreadable.write("run.json", `{"study": "cut`)
	newFolder(t, filepath.Join(dir, "damaged"), "net").write("cells/x.log", "this is not a log, but a text")
	url := startServer(t, Options{Dirs: []string{dir}})
	found := ids(t, url, "")
	if len(found) != 2 {
		t.Errorf("the runs are %v; want good and damaged", found)
	}
	if status, body, _ := get(t, url+"/runs/"+found[filepath.Base(dir)+"/damaged"]); status != 500 || !strings.Contains(body, "damaged in 1 places") {
		t.Errorf("page of the damaged run: status %d, %s; want 500 and the reason", status, body)
	}
}
