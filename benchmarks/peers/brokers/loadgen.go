// One load generator for brokers: binary Preserves (syndicate-server, ours and the Rust one), NATS and Redis.
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ---------------------------------------------------------------- preserves binary
type V struct {
	k  byte
	b  []byte
	it []V
}

func vlen(b *bytes.Buffer, n int) {
	for n >= 128 {
		b.WriteByte(byte(n&127 | 128))
		n >>= 7
	}
	b.WriteByte(byte(n))
}
func str(b *bytes.Buffer, s string)  { b.WriteByte(0xb1); vlen(b, len(s)); b.WriteString(s) }
func sym(b *bytes.Buffer, s string)  { b.WriteByte(0xb3); vlen(b, len(s)); b.WriteString(s) }
func bts(b *bytes.Buffer, s []byte)  { b.WriteByte(0xb2); vlen(b, len(s)); b.Write(s) }
func num(b *bytes.Buffer, n int64) {
	b.WriteByte(0xb0)
	if n == 0 {
		b.WriteByte(0)
		return
	}
	l := 1
	for ; l < 8; l++ {
		if n>>(8*uint(l)-1) == 0 || n>>(8*uint(l)-1) == -1 {
			break
		}
	}
	b.WriteByte(byte(l))
	for i := l - 1; i >= 0; i-- {
		b.WriteByte(byte(n >> (8 * uint(i))))
	}
}
func rec(b *bytes.Buffer, l string) { b.WriteByte(0xb4); sym(b, l) }
func seq(b *bytes.Buffer)           { b.WriteByte(0xb5) }
func end(b *bytes.Buffer)           { b.WriteByte(0x84) }
func mine(b *bytes.Buffer, o int64) { b.WriteByte(0x86); seq(b); num(b, 0); num(b, o); end(b) }

func rlen(r *bufio.Reader) (int, error) {
	n, s := 0, uint(0)
	for {
		c, e := r.ReadByte()
		if e != nil {
			return 0, e
		}
		n |= int(c&127) << s
		if c < 128 {
			return n, nil
		}
		s += 7
	}
}
func dec(r *bufio.Reader) (V, error) {
	c, e := r.ReadByte()
	if e != nil {
		return V{}, e
	}
	switch c {
	case 0x80, 0x81, 0x84:
		return V{k: c}, nil
	case 0x86:
		v, e := dec(r)
		return V{k: c, it: []V{v}}, e
	case 0x87, 0xb0, 0xb1, 0xb2, 0xb3:
		n, e := rlen(r)
		if e != nil {
			return V{}, e
		}
		b := make([]byte, n)
		for o := 0; o < n; {
			m, e := r.Read(b[o:])
			if e != nil {
				return V{}, e
			}
			o += m
		}
		return V{k: c, b: b}, nil
	case 0xb4, 0xb5, 0xb6, 0xb7:
		v := V{k: c, it: make([]V, 0, 4)}
		for {
			x, e := dec(r)
			if e != nil {
				return v, e
			}
			if x.k == 0x84 {
				return v, nil
			}
			v.it = append(v.it, x)
		}
	}
	return V{}, fmt.Errorf("bad tag %x", c)
}
func (v V) num() int64 {
	var n int64
	for i, c := range v.b {
		if i == 0 && c >= 128 {
			n = -1
		}
		n = n<<8 | int64(c)
	}
	return n
}
func (v V) String() string {
	switch v.k {
	case 0x80:
		return "#f"
	case 0x81:
		return "#t"
	case 0x86:
		return "#:" + v.it[0].String()
	case 0xb0:
		return strconv.FormatInt(v.num(), 10)
	case 0xb1:
		return strconv.Quote(string(v.b))
	case 0xb2:
		return "#x" + hex.EncodeToString(v.b)
	case 0xb3:
		return string(v.b)
	}
	s := []string{}
	for _, x := range v.it {
		s = append(s, x.String())
	}
	j := strings.Join(s, " ")
	return map[byte]string{0xb4: "<", 0xb5: "[", 0xb6: "#{", 0xb7: "{"}[v.k] + j + map[byte]string{0xb4: ">", 0xb5: "]", 0xb6: "}", 0xb7: "}"}[v.k]
}

// ---------------------------------------------------------------- connections
type Conn interface {
	Sub(topic string, f func(p []byte, minus bool))
	Pub(topic string, p []byte)
	Assert(topic string, p []byte) int64
	Retract(h int64)
	Flush()
	Sync()
}

type Syn struct {
	c    net.Conn
	w    *bufio.Writer
	r    *bufio.Reader
	mu   sync.Mutex
	ds   int64
	next int64
	hnd  int64
	subs map[int64]func(p []byte, minus bool)
	hs   map[int64]func(p []byte, minus bool)
	hp   map[int64][]byte
	syn  map[int64]chan bool
	tmp  bytes.Buffer
}

var capHex = "69ca300c1dbfa08fba692102dd82311a"
var oidName = "syndicate"

func dialSyn(addr string) *Syn {
	c, e := net.Dial("tcp", addr)
	if e != nil {
		panic(e)
	}
	s := &Syn{c: c, w: bufio.NewWriterSize(c, 65536), r: bufio.NewReaderSize(c, 65536), subs: map[int64]func([]byte, bool){}, hs: map[int64]func([]byte, bool){}, hp: map[int64][]byte{}, syn: map[int64]chan bool{}}
	b := &s.tmp
	seq(b)
	seq(b)
	num(b, 0)
	rec(b, "A")
	rec(b, "resolve")
	rec(b, "ref")
	b.WriteByte(0xb7)
	sym(b, "oid")
	str(b, oidName)
	sym(b, "sig")
	sig, _ := hex.DecodeString(capHex)
	bts(b, sig)
	end(b)
	end(b)
	mine(b, 0)
	end(b)
	num(b, 1)
	end(b)
	end(b)
	end(b)
	s.next, s.hnd = 1, 1
	s.w.Write(b.Bytes())
	b.Reset()
	s.w.Flush()
	for {
		v, e := dec(s.r)
		if e != nil {
			panic(e)
		}
		if v.k == 0xb5 && len(v.it) > 0 && v.it[0].it[0].num() == 0 {
			a := v.it[0].it[1]
			x := a.it[1]
			if w := string(x.it[0].b); w != "accepted" && w != "ok" {
				panic(v.String())
			}
			s.ds = x.it[1].it[0].it[1].num()
			break
		}
	}
	go s.run()
	return s
}
func (s *Syn) run() {
	for {
		v, e := dec(s.r)
		if e != nil {
			return
		}
		if v.k == 0xb4 {
			fmt.Fprintln(os.Stderr, "server says", v.String())
			continue
		}
		if v.k != 0xb5 {
			continue
		}
		for _, x := range v.it {
			o := x.it[0].num()
			ev := x.it[1]
			switch ev.it[0].b[0] {
			case 'M':
				if f := s.subs[o]; f != nil {
					f(ev.it[1].it[0].b, false)
				} else {
					s.mu.Lock()
					ch := s.syn[o]
					delete(s.syn, o)
					s.mu.Unlock()
					if ch != nil {
						ch <- true
					}
				}
			case 'A':
				if f := s.subs[o]; f != nil {
					s.hs[ev.it[2].num()] = f
					s.hp[ev.it[2].num()] = ev.it[1].it[0].b
					f(ev.it[1].it[0].b, false)
				}
			case 'R':
				h := ev.it[1].num()
				if f := s.hs[h]; f != nil {
					f(s.hp[h], true)
					delete(s.hs, h)
					delete(s.hp, h)
				}
			case 'S': // answer: yours ref
				ref := ev.it[1].it[0]
				s.mu.Lock()
				b := &bytes.Buffer{}
				seq(b)
				seq(b)
				num(b, ref.it[1].num())
				rec(b, "M")
				b.WriteByte(0x81)
				end(b)
				end(b)
				end(b)
				s.w.Write(b.Bytes())
				s.w.Flush()
				s.mu.Unlock()
			}
		}
	}
}
func (s *Syn) Sub(topic string, f func([]byte, bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.next
	s.next++
	s.hnd++
	s.subs[o] = f
	b := &s.tmp
	seq(b)
	seq(b)
	num(b, s.ds)
	rec(b, "A")
	rec(b, "Observe")
	rec(b, "group")
	rec(b, "rec")
	sym(b, "Bench")
	end(b)
	b.WriteByte(0xb7)
	num(b, 0)
	rec(b, "lit")
	str(b, topic)
	end(b)
	num(b, 1)
	rec(b, "bind")
	rec(b, "_")
	end(b)
	end(b)
	end(b)
	end(b)
	mine(b, o)
	end(b)
	num(b, s.hnd)
	end(b)
	end(b)
	end(b)
	s.w.Write(b.Bytes())
	b.Reset()
	s.w.Flush()
}
func (s *Syn) val(b *bytes.Buffer, topic string, p []byte) {
	rec(b, "Bench")
	str(b, topic)
	b.WriteByte(0xb1)
	vlen(b, len(p))
	b.Write(p)
	end(b)
}
func (s *Syn) Pub(topic string, p []byte) {
	s.mu.Lock()
	b := &s.tmp
	seq(b)
	seq(b)
	num(b, s.ds)
	rec(b, "M")
	s.val(b, topic, p)
	end(b)
	end(b)
	end(b)
	s.w.Write(b.Bytes())
	b.Reset()
	s.mu.Unlock()
}
func (s *Syn) Assert(topic string, p []byte) int64 {
	s.mu.Lock()
	s.hnd++
	h := s.hnd
	b := &s.tmp
	seq(b)
	seq(b)
	num(b, s.ds)
	rec(b, "A")
	s.val(b, topic, p)
	num(b, h)
	end(b)
	end(b)
	end(b)
	s.w.Write(b.Bytes())
	b.Reset()
	s.mu.Unlock()
	return h
}
func (s *Syn) Retract(h int64) {
	s.mu.Lock()
	b := &s.tmp
	seq(b)
	seq(b)
	num(b, s.ds)
	rec(b, "R")
	num(b, h)
	end(b)
	end(b)
	end(b)
	s.w.Write(b.Bytes())
	b.Reset()
	s.mu.Unlock()
}
func (s *Syn) Flush() { s.mu.Lock(); s.w.Flush(); s.mu.Unlock() }
func (s *Syn) Sync() {
	ch := make(chan bool, 1)
	s.mu.Lock()
	o := s.next
	s.next++
	s.syn[o] = ch
	b := &s.tmp
	seq(b)
	seq(b)
	num(b, s.ds)
	rec(b, "S")
	mine(b, o)
	end(b)
	end(b)
	end(b)
	s.w.Write(b.Bytes())
	b.Reset()
	s.w.Flush()
	s.mu.Unlock()
	select {
	case <-ch:
	case <-time.After(20 * time.Second):
		fmt.Fprintln(os.Stderr, "sync timeout")
	}
}

type Nats struct {
	c    net.Conn
	w    *bufio.Writer
	r    *bufio.Reader
	mu   sync.Mutex
	n    int
	subs map[string]func([]byte, bool)
	pong chan bool
}

func dialNats(addr string) *Nats {
	c, e := net.Dial("tcp", addr)
	if e != nil {
		panic(e)
	}
	s := &Nats{c: c, w: bufio.NewWriterSize(c, 65536), r: bufio.NewReaderSize(c, 65536), subs: map[string]func([]byte, bool){}, pong: make(chan bool, 8)}
	s.r.ReadString('\n')
	s.w.WriteString("CONNECT {\"verbose\":false,\"pedantic\":false,\"echo\":true}\r\n")
	s.w.Flush()
	go s.run()
	s.Sync()
	return s
}
func (s *Nats) run() {
	for {
		l, e := s.r.ReadSlice('\n')
		if e != nil {
			return
		}
		switch {
		case l[0] == 'M':
			f := bytes.Fields(l)
			fn := s.subs[string(f[2])]
			n, _ := strconv.Atoi(string(f[len(f)-1]))
			b := make([]byte, n+2)
			for o := 0; o < n+2; {
				m, e := s.r.Read(b[o:])
				if e != nil {
					return
				}
				o += m
			}
			fn(b[:n], false)
		case bytes.HasPrefix(l, []byte("PING")):
			s.mu.Lock()
			s.w.WriteString("PONG\r\n")
			s.w.Flush()
			s.mu.Unlock()
		case bytes.HasPrefix(l, []byte("PONG")):
			s.pong <- true
		}
	}
}
func (s *Nats) Sub(topic string, f func([]byte, bool)) {
	s.mu.Lock()
	s.n++
	s.subs[strconv.Itoa(s.n)] = f
	fmt.Fprintf(s.w, "SUB %s %d\r\n", topic, s.n)
	s.w.Flush()
	s.mu.Unlock()
}
func (s *Nats) Pub(topic string, p []byte) {
	s.mu.Lock()
	s.w.WriteString("PUB ")
	s.w.WriteString(topic)
	s.w.WriteByte(' ')
	s.w.WriteString(strconv.Itoa(len(p)))
	s.w.WriteString("\r\n")
	s.w.Write(p)
	s.w.WriteString("\r\n")
	s.mu.Unlock()
}
func (s *Nats) Assert(topic string, p []byte) int64 { panic("no") }
func (s *Nats) Retract(h int64)                     { panic("no") }
func (s *Nats) Flush()                              { s.mu.Lock(); s.w.Flush(); s.mu.Unlock() }
func (s *Nats) Sync() {
	s.mu.Lock()
	s.w.WriteString("PING\r\n")
	s.w.Flush()
	s.mu.Unlock()
	<-s.pong
}

type Redis struct {
	c, p   net.Conn
	w, sw  *bufio.Writer
	r      *bufio.Reader
	mu     sync.Mutex
	f      map[string]func([]byte, bool)
	got    int64
	sent   int64
	subbed chan bool
}

func dialRedis(addr string) *Redis {
	c, e := net.Dial("tcp", addr)
	if e != nil {
		panic(e)
	}
	p, e := net.Dial("tcp", addr)
	if e != nil {
		panic(e)
	}
	s := &Redis{c: c, p: p, w: bufio.NewWriterSize(p, 65536), sw: bufio.NewWriterSize(c, 65536), r: bufio.NewReaderSize(c, 65536), f: map[string]func([]byte, bool){}, subbed: make(chan bool, 8)}
	go s.run()
	go func() {
		r := bufio.NewReaderSize(p, 65536)
		for {
			_, e := r.ReadSlice('\n')
			if e != nil {
				return
			}
			atomic.AddInt64(&s.got, 1)
		}
	}()
	return s
}
func (s *Redis) bulk() []byte {
	l, e := s.r.ReadSlice('\n')
	if e != nil {
		return nil
	}
	if l[0] == ':' {
		return []byte{}
	}
	n, _ := strconv.Atoi(string(l[1 : len(l)-2]))
	b := make([]byte, n+2)
	for o := 0; o < n+2; {
		m, e := s.r.Read(b[o:])
		if e != nil {
			return nil
		}
		o += m
	}
	return b[:n]
}
func (s *Redis) run() {
	for {
		l, e := s.r.ReadSlice('\n')
		if e != nil || l[0] != '*' {
			return
		}
		k := s.bulk()
		t := s.bulk()
		p := s.bulk()
		if p == nil {
			return
		}
		if string(k) == "message" {
			s.f[string(t)](p, false)
		} else {
			s.subbed <- true
		}
	}
}
func (s *Redis) Sub(topic string, f func([]byte, bool)) {
	s.mu.Lock()
	s.f[topic] = f
	fmt.Fprintf(s.sw, "*2\r\n$9\r\nSUBSCRIBE\r\n$%d\r\n%s\r\n", len(topic), topic)
	s.sw.Flush()
	s.mu.Unlock()
	<-s.subbed
}
func (s *Redis) Pub(topic string, p []byte) {
	s.mu.Lock()
	s.sent++
	s.w.WriteString("*3\r\n$7\r\nPUBLISH\r\n$")
	s.w.WriteString(strconv.Itoa(len(topic)))
	s.w.WriteString("\r\n")
	s.w.WriteString(topic)
	s.w.WriteString("\r\n$")
	s.w.WriteString(strconv.Itoa(len(p)))
	s.w.WriteString("\r\n")
	s.w.Write(p)
	s.w.WriteString("\r\n")
	s.mu.Unlock()
}
func (s *Redis) Assert(topic string, p []byte) int64 { panic("no") }
func (s *Redis) Retract(h int64)                     { panic("no") }
func (s *Redis) Flush()                              { s.mu.Lock(); s.w.Flush(); s.mu.Unlock() }
func (s *Redis) Sync() {
	for atomic.LoadInt64(&s.got) < s.sent {
		time.Sleep(time.Millisecond)
	}
}

// ---------------------------------------------------------------- measuring
func cpu(pid int) float64 {
	if pid == 0 {
		return 0
	}
	d, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	t := 0.0
	for _, e := range d {
		b, er := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, e.Name()))
		if er == nil {
			n, _ := strconv.ParseFloat(strings.Fields(string(b))[0], 64)
			t += n / 1e9
		}
	}
	return t
}
func rss(pid int) float64 {
	b, e := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if e != nil {
		return 0
	}
	f := strings.Fields(string(b))
	n, _ := strconv.Atoi(f[1])
	return float64(n) * 4096 / 1e6
}

func main() {
	proto := flag.String("proto", "syn", "")
	addr := flag.String("addr", "127.0.0.1:8001", "")
	mode := flag.String("mode", "pipe", "pipe rr fan churn idle")
	n := flag.Int("n", 100000, "messages in all")
	pairs := flag.Int("pairs", 1, "")
	subs := flag.Int("subs", 100, "")
	window := flag.Int("window", 256, "")
	size := flag.Int("size", 100, "")
	pid := flag.Int("pid", 0, "")
	label := flag.String("label", "", "")
	stand := flag.Int("stand", 0, "assertions that stand meanwhile")
	limit := flag.Duration("limit", 40*time.Second, "")
	flag.Parse()
	dial := func() Conn {
		switch *proto {
		case "nats":
			return dialNats(*addr)
		case "redis":
			return dialRedis(*addr)
		}
		return dialSyn(*addr)
	}
	var lat []int64
	var lm sync.Mutex
	payload := func(seq int) []byte {
		b := make([]byte, *size)
		for i := range b {
			b[i] = 'x'
		}
		copy(b, fmt.Sprintf("%020d", time.Now().UnixNano()))
		return b
	}
	since := func(p []byte) int64 { t, _ := strconv.ParseInt(string(p[:20]), 10, 64); return time.Now().UnixNano() - t }
	var done int64
	var wg sync.WaitGroup
	var start time.Time
	var c0 float64
	_ = stand
	events := int64(0)
	go func() {
		time.Sleep(*limit)
		fmt.Fprintln(os.Stderr, *label, "LIMIT reached, done", atomic.LoadInt64(&done))
		os.Exit(3)
	}()
	switch *mode {
	case "pipe", "rr":
		per := *n / *pairs
		type P struct {
			a, b Conn
			tok  chan bool
		}
		ps := make([]*P, *pairs)
		for i := range ps {
			p := &P{dial(), dial(), make(chan bool, *window)}
			ps[i] = p
			topic := fmt.Sprintf("%s-t%d", *label, i)
			l := make([]int64, 0, per)
			cnt := 0
			if *mode == "pipe" {
				wg.Add(1)
				p.b.Sub(topic, func(q []byte, m bool) {
					l = append(l, since(q))
					cnt++
					atomic.AddInt64(&done, 1)
					p.tok <- true
					if cnt == per {
						lm.Lock()
						lat = append(lat, l...)
						lm.Unlock()
						wg.Done()
					}
				})
				p.b.Sync()
			} else {
				p.b.Sub(topic, func(q []byte, m bool) { p.b.Pub("r"+topic, q); p.b.Flush() })
				wg.Add(1)
				p.a.Sub("r"+topic, func(q []byte, m bool) {
					l = append(l, since(q))
					cnt++
					atomic.AddInt64(&done, 1)
					p.tok <- true
					if cnt == per {
						lm.Lock()
						lat = append(lat, l...)
						lm.Unlock()
						wg.Done()
					}
				})
				p.a.Sync()
				p.b.Sync()
			}
		}
		start = time.Now()
		c0 = cpu(*pid)
		for i := range ps {
			p := ps[i]
			topic := fmt.Sprintf("%s-t%d", *label, i)
			go func() {
				free := *window
				for k := 0; k < per; k++ {
					if free == 0 {
						p.a.Flush()
						<-p.tok
						free++
					more:
						for {
							select {
							case <-p.tok:
								free++
							default:
								break more
							}
						}
					}
					free--
					p.a.Pub(topic, payload(k))
				}
				p.a.Flush()
			}()
		}
		wg.Wait()
		events = int64(per * *pairs)
	case "fan":
		a := dial()
		tok := make(chan bool, *window**subs)
		per := *n / *subs
		for i := 0; i < *subs; i++ {
			b := dial()
			wg.Add(1)
			cnt := 0
			l := make([]int64, 0, per)
			b.Sub("t", func(q []byte, m bool) {
				l = append(l, since(q))
				cnt++
				atomic.AddInt64(&done, 1)
				tok <- true
				if cnt == per {
					lm.Lock()
					lat = append(lat, l...)
					lm.Unlock()
					wg.Done()
				}
			})
			b.Sync()
		}
		start = time.Now()
		c0 = cpu(*pid)
		go func() {
			out := 0
			for k := 0; k < per; k++ {
				for out+*subs > *window**subs {
					a.Flush()
					<-tok
					out--
				}
				a.Pub("t", payload(k))
				out += *subs
			}
			a.Flush()
			for range tok {
			}
		}()
		wg.Wait()
		events = int64(per * *subs)
	case "churn":
		// each pair: a asserts, b sees +, a retracts, b sees -
		per := *n / *pairs
		for i := 0; i < *pairs; i++ {
			a, b := dial(), dial()
			topic := fmt.Sprintf("%s-t%d", *label, i)
			tok := make(chan []byte, *window+8)
			cnt := 0
			l := make([]int64, 0, per)
			wg.Add(1)
			b.Sub(topic, func(q []byte, m bool) {
				if m {
					cnt++
					atomic.AddInt64(&done, 1)
					if cnt == per {
						lm.Lock()
						lat = append(lat, l...)
						lm.Unlock()
						wg.Done()
					}
				} else {
					l = append(l, since(q))
					tok <- q
				}
			})
			b.Sync()
			if start.IsZero() {
				start = time.Now()
				c0 = cpu(*pid)
			}
			go func() {
				hs := map[string]int64{}
				out := 0
				for k := 0; k < per || out > 0; {
					if k < per && out < *window {
						p := payload(k)
						copy(p[20:], fmt.Sprintf("%08d", k))
						hs[string(p)] = a.Assert(topic, p)
						k++
						out++
						continue
					}
					a.Flush()
					p := <-tok
					a.Retract(hs[string(p)])
					delete(hs, string(p))
					out--
				more2:
					for {
						select {
						case p := <-tok:
							a.Retract(hs[string(p)])
							delete(hs, string(p))
							out--
						default:
							break more2
						}
					}
				}
				a.Flush()
			}()
		}
		wg.Wait()
		events = int64(per * *pairs)
	}
	el := time.Since(start).Seconds()
	used := cpu(*pid) - c0
	sort.Slice(lat, func(i, j int) bool { return lat[i] < lat[j] })
	q := func(f float64) float64 {
		if len(lat) == 0 {
			return 0
		}
		return float64(lat[int(f*float64(len(lat)-1))]) / 1e6
	}
	o, _ := json.Marshal(map[string]any{"label": *label, "mode": *mode, "pairs": *pairs, "window": *window, "n": events, "rate": int(float64(events) / el), "p50ms": q(.5), "p99ms": q(.99), "maxms": q(1), "cpu_s_per_100k": used / float64(events) * 1e5, "cpu_util": used / el, "rssMB": rss(*pid), "my_cpu": cpu(os.Getpid())})
	fmt.Println(string(o))
}
