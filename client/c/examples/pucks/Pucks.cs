// Pucks by P/Invoke, as Unity and every .NET program call a library. `Pucks` is what pucks.h declares; `Program` plays, with a
// ticket or alone:   mono Program.exe [SECONDS [TICKET]]
using System;
using System.Diagnostics;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

static class Pucks
{
    // In Unity on iOS, whose plugins are linked into the app: "__Internal".
    const string Library = "pucks";

    // PUCKS_ABI of pucks.h. After a change of the structs it is another number: then change them here too.
    public const uint Abi = 0x892b7faa;

    [Flags] public enum Held : byte { Left = 1, Right = 2, Down = 4, Up = 8 }
    public const uint Jump = 1;
    public enum State { Over, Connecting, Playing, Reconnecting }
    public enum CueKind : uint { Start, Confirm, Cancel }

    [StructLayout(LayoutKind.Sequential)] public struct Pad { public Held Held; }
    [StructLayout(LayoutKind.Sequential)] public struct Command { public uint Kind; public short XMm, YMm; }
    [StructLayout(LayoutKind.Sequential)] public struct Pose { public float X, Y; }
    [StructLayout(LayoutKind.Sequential)] public struct Cue { public ulong BumpOf; }
    [StructLayout(LayoutKind.Sequential)] public struct Hud { public uint Bumps; }
    [StructLayout(LayoutKind.Sequential)] public struct Entity { public ulong Key; public uint IsLocal; public Pose Pose; }
    [StructLayout(LayoutKind.Sequential)] public struct CueEvent { public ulong Id; public CueKind Kind; public Cue Cue; }
    [StructLayout(LayoutKind.Sequential)] public struct Event { public uint Kind, Seat, Number; }

    [DllImport(Library)] static extern ulong pucks_join(uint abi, byte[] ticket);
    [DllImport(Library)] static extern ulong pucks_alone(uint abi, uint seats);
    [DllImport(Library)] static extern State pucks_advance(ulong match, double nowS, Pad[] pads, uint seats);
    [DllImport(Library)] static extern long pucks_send(ulong match, uint seat, ref Command command);
    [DllImport(Library)] static extern UIntPtr pucks_shown(ulong match, [Out] Entity[] entities, UIntPtr room);
    [DllImport(Library)] static extern int pucks_get_hud(ulong match, out Hud hud);
    [DllImport(Library)] static extern int pucks_poll_cue(ulong match, out CueEvent cue);
    [DllImport(Library)] static extern int pucks_poll_event(ulong match, out Event happened, byte[] text, UIntPtr room);
    [DllImport(Library)] static extern UIntPtr pucks_why(ulong match, byte[] text, UIntPtr room);
    [DllImport(Library)] static extern void pucks_leave(ulong match);
    [DllImport(Library)] static extern void pucks_leave_all();

    static readonly byte[] text = new byte[1024];
    static readonly UIntPtr room = (UIntPtr)text.Length;

    // The runtime's own conversion of strings is UTF-8 on some systems only.
    static string Text() { return Encoding.UTF8.GetString(text, 0, Array.IndexOf(text, (byte)0)); }

    public static ulong Join(string ticket) { return pucks_join(Abi, Encoding.UTF8.GetBytes(ticket + "\0")); }
    public static ulong Alone(uint seats) { return pucks_alone(Abi, seats); }
    public static State Advance(ulong match, double nowS, Pad[] pads) { return pucks_advance(match, nowS, pads, (uint)pads.Length); }
    public static long Send(ulong match, uint seat, Command command) { return pucks_send(match, seat, ref command); }
    public static bool GetHud(ulong match, out Hud hud) { return pucks_get_hud(match, out hud) == 1; }
    public static bool PollCue(ulong match, out CueEvent cue) { return pucks_poll_cue(match, out cue) == 1; }
    public static string Why(ulong match) { pucks_why(match, text, room); return Text(); }
    public static void Leave(ulong match) { pucks_leave(match); }
    // In Unity, where a script that has just been reloaded has lost its numbers: [RuntimeInitializeOnLoadMethod].
    public static void LeaveAll() { pucks_leave_all(); }

    // Fills `entities`, and returns how many there are in all.
    public static int Shown(ulong match, Entity[] entities) { return (int)pucks_shown(match, entities, (UIntPtr)entities.Length); }

    public static bool PollEvent(ulong match, out Event happened, out string says)
    {
        bool isOne = pucks_poll_event(match, out happened, text, room) == 1;
        says = isOne ? Text() : "";
        return isOne;
    }
}

static class Program
{
    static int Main(string[] args)
    {
        double playS = args.Length > 0 ? double.Parse(args[0]) : 3.0;
        ulong match = args.Length > 1 ? Pucks.Join(args[1]) : Pucks.Alone(1);
        var clock = Stopwatch.StartNew();
        var pads = new Pucks.Pad[1];
        var entities = new Pucks.Entity[16];
        var cues = new int[3];
        int count = 0, frames = 0;
        bool jumped = false;
        var hud = new Pucks.Hud();
        var state = Pucks.State.Connecting;
        while (state != Pucks.State.Over && clock.Elapsed.TotalSeconds < playS)
        {
            bool odd = (int)clock.Elapsed.TotalSeconds % 2 == 1;
            pads[0].Held = odd ? Pucks.Held.Left | Pucks.Held.Up : Pucks.Held.Right | Pucks.Held.Down;
            state = Pucks.Advance(match, clock.Elapsed.TotalSeconds, pads);
            Pucks.CueEvent cue;
            while (Pucks.PollCue(match, out cue)) cues[(int)cue.Kind]++;
            Pucks.Event happened;
            string says;
            while (Pucks.PollEvent(match, out happened, out says)) Console.WriteLine("event {0}: {1}", happened.Kind, says);
            if (state == Pucks.State.Playing && !jumped)
            {
                jumped = Pucks.Send(match, 0, new Pucks.Command { Kind = Pucks.Jump, XMm = 500, YMm = -500 }) >= 0;
                if (!jumped) Console.WriteLine(Pucks.Why(match));
            }
            count = Pucks.Shown(match, entities);
            Pucks.GetHud(match, out hud);
            frames++;
            Thread.Sleep(8);
        }
        Console.WriteLine("state {0}, {1} frames, cues {2} {3} {4}, {5} bumps, jumped {6}", (int)state, frames, cues[0], cues[1],
            cues[2], hud.Bumps, jumped ? 1 : 0);
        for (int i = 0; i < Math.Min(count, entities.Length); i++)
            Console.WriteLine("puck {0} local {1} at {2:F2} {3:F2}", entities[i].Key, entities[i].IsLocal, entities[i].Pose.X,
                entities[i].Pose.Y);
        if (state == Pucks.State.Over) Console.WriteLine("over: {0}", Pucks.Why(match));
        Pucks.Leave(match);
        return state == Pucks.State.Over ? 1 : 0;
    }
}
