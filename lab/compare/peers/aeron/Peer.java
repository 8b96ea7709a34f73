import io.aeron.Aeron;
import io.aeron.FragmentAssembler;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.BufferClaim;
import io.aeron.logbuffer.FragmentHandler;
import io.aeron.logbuffer.Header;
import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.FileReader;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.agrona.BufferUtil;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.NoOpIdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Aeron IPC: one publication to the receiver, which all senders share, and one back. The receiver embeds the media
 * driver and invokes it from its own loop, so that nothing but the two measured threads needs a core.
 *
 * <p>Messages are copied from a buffer into a place that was claimed in the log, those longer than a fragment by an offer.
 * They are read where they lie in the log; those longer than a fragment are put together by a FragmentAssembler. The protocol is in lab/compare/README.md.
 */
public final class Peer implements FragmentHandler {
  private static final int RECEIVER = 0;
  private static final int THERE = 1;
  private static final int BACK = 2;
  private static final int REGION_BYTES = 128 << 20;
  private static final int SENDER_SHIFT = 48;
  private static final int SENDERS_MAX = 64;
  private static final int FRAGMENTS_PER_POLL = 256;

  /**
   * Messages of a stream between two calls of the loop that moves them. Each order would begin in the interpreter
   * otherwise: a loop that is entered seldom is never compiled as a whole.
   */
  private static final int MESSAGES_PER_CALL = 1000;

  /** Of sockets, and in flight at most: as much as systems allow that nobody has changed, or nearly. */
  private static final int BUFFER_BYTES = 2 << 20;

  /** Of the readers of streams between hosts, less the stream's number. */
  private static final int PORT = 7503;

  /** The largest that the driver takes. */
  private static final int FRAGMENT_BYTES = 65504;

  /** Empty polls, or full ones, between two invocations of the driver. */
  private static final int POLLS_PER_INVOCATION = 64;

  /** Nobody is thought dead while another peer is measured. */
  private static final long TIMEOUT_NS = TimeUnit.MINUTES.toNanos(30);

  private static final long LINGERING_NS = TimeUnit.MILLISECONDS.toNanos(20);

  private static final long OPENING_NS = TimeUnit.SECONDS.toNanos(20);

  private final Path directory;
  private final int role;

  /** Whether the two are on different hosts. */
  private final boolean between;

  /** Whether this process has a driver: on one host there is one for both. */
  private final boolean drives;

  private final FileOutputStream answers;
  private MediaDriver driver;
  private Aeron aeron;
  private Publication publication;
  private Subscription subscription;
  private final FragmentAssembler assembler = new FragmentAssembler(this);

  /** This itself, unless messages come in fragments. */
  private FragmentHandler handler;

  private final BufferClaim claim = new BufferClaim();

  private UnsafeBuffer memory = new UnsafeBuffer(0, 0);
  private int polls;

  /** Of the order under way. */
  private int size;

  private long handled;
  private long checked;
  private final long[] expected = new long[SENDERS_MAX + 1];

  private Peer(final Path directory, final int role, final boolean between) throws IOException {
    this.directory = directory;
    this.role = role;
    this.between = between;
    this.drives = between || role == RECEIVER;
    this.answers = new FileOutputStream(directory.resolve("answers." + role).toFile());
  }

  public static void main(final String[] arguments) throws Exception {
    if (arguments.length != 6) {
      throw new IllegalArgumentException("VARIANT DIRECTORY ROLE SENDERS RECEIVER_CORE SENDER_CORE");
    }
    final Peer peer = new Peer(Path.of(arguments[1]), Integer.parseInt(arguments[2]), arguments[0].equals("udp"));
    try {
      peer.open(Integer.parseInt(arguments[3]));
      peer.serve();
      System.exit(0);
    } catch (final Throwable error) {
      peer.say("{\"error\":\"" + error.toString().replaceAll("[\"\\\\\\n\\r]", " ") + "\"}");
      error.printStackTrace();
      System.exit(1);
    }
  }

  private void open(final int senders) throws Exception {
    final String place = directory.resolve(between ? "aeron." + role : "aeron").toString();
    if (drives) {
      driver =
          MediaDriver.launch(
              new MediaDriver.Context()
                  .aeronDirectoryName(place)
                  .dirDeleteOnStart(true)
                  .threadingMode(ThreadingMode.INVOKER)
                  .sharedIdleStrategy(NoOpIdleStrategy.INSTANCE)
                  .ipcMtuLength(FRAGMENT_BYTES)
                  .socketSndbufLength(BUFFER_BYTES)
                  .socketRcvbufLength(BUFFER_BYTES)
                  .initialWindowLength(BUFFER_BYTES)
                  .termBufferSparseFile(false)
                  .clientLivenessTimeoutNs(TIMEOUT_NS)
                  .imageLivenessTimeoutNs(TIMEOUT_NS)
                  .publicationConnectionTimeoutNs(TIMEOUT_NS)
                  .publicationUnblockTimeoutNs(2 * TIMEOUT_NS));
    } else {
      await("driver");
    }
    final Aeron.Context context =
        new Aeron.Context()
            .aeronDirectoryName(place)
            .useConductorAgentInvoker(true)
            .idleStrategy(NoOpIdleStrategy.INSTANCE)
            .preTouchMappedMemory(true)
            .driverTimeoutMs(TimeUnit.NANOSECONDS.toMillis(TIMEOUT_NS));
    if (drives) {
      context.driverAgentInvoker(driver.sharedAgentInvoker());
    }
    if (role == RECEIVER) {
      Files.createFile(directory.resolve("driver"));
    }
    aeron = Aeron.connect(context);
    final int out = role == RECEIVER ? BACK : THERE;
    final String channel = channel(out);
    publication = senders == 1 ? aeron.addExclusivePublication(channel, out) : aeron.addPublication(channel, out);
    // Only one sender is ever answered; another subscriber that does not read would hold up the log.
    if (role <= 1) {
      final int in = role == RECEIVER ? THERE : BACK;
      subscription = aeron.addSubscription(channel(in), in);
    }
    final long deadline = System.nanoTime() + OPENING_NS;
    boolean told = false;
    while (true) {
      invoke();
      final boolean connected = publication.isConnected() && (subscription == null || subscription.isConnected());
      if (connected && !told) {
        told = true;
        Files.createFile(directory.resolve("connected." + role));
      }
      if (told && (role != RECEIVER || allConnected(senders))) {
        break;
      }
      if (System.nanoTime() > deadline) {
        throw new IllegalStateException("not connected in time");
      }
      LockSupport.parkNanos(100_000);
    }
    say("{\"open\":true}");
  }

  /** Within a host, or to the readers of that stream. */
  private String channel(final int stream) {
    if (!between) {
      return "aeron:ipc";
    }
    final String reader = System.getenv(stream == THERE ? "COMPARE_RECEIVER" : "COMPARE_SENDER");
    return "aeron:udp?endpoint=" + reader + ":" + (PORT + stream);
  }

  private boolean allConnected(final int senders) {
    for (int sender = 1; sender <= senders; sender++) {
      if (!Files.exists(directory.resolve("connected." + sender))) {
        return false;
      }
    }
    return true;
  }

  private void await(final String name) {
    final long deadline = System.nanoTime() + OPENING_NS;
    while (!Files.exists(directory.resolve(name))) {
      if (System.nanoTime() > deadline) {
        throw new IllegalStateException("nobody made " + name);
      }
      LockSupport.parkNanos(500_000);
    }
  }

  private void invoke() {
    if (drives) {
      driver.sharedAgentInvoker().invoke();
    }
    aeron.conductorAgentInvoker().invoke();
  }

  private void say(final String line) throws IOException {
    answers.write((line + "\n").getBytes(StandardCharsets.US_ASCII));
  }

  private void answer(final long begin, final long end, final long count) throws IOException {
    say("{\"begin_ns\":" + begin + ",\"end_ns\":" + end + ",\"checked\":" + count + "}");
  }

  private void serve() throws Exception {
    try (BufferedReader orders = new BufferedReader(new FileReader(directory.resolve("orders." + role).toFile()))) {
      String line;
      while ((line = orders.readLine()) != null) {
        final String[] words = line.split(" ");
        if (words.length != 5) {
          return;
        }
        size = Integer.parseInt(words[1]);
        final long count = Long.parseLong(words[2]);
        final int senders = Integer.parseInt(words[3]);
        final boolean fresh = words[4].equals("fresh");
        if (size > publication.maxMessageLength()) {
          say("{\"unsupported\":\"a message is at most " + publication.maxMessageLength() + " bytes\"}");
          continue;
        }
        prepare(fresh ? REGION_BYTES : size);
        if (words[0].equals("latency")) {
          latency(count);
        } else if (role == RECEIVER) {
          take(count * senders);
        } else {
          give(count, fresh);
        }
      }
    }
  }

  private void prepare(final int bytes) {
    handled = 0;
    checked = 0;
    handler = size > publication.maxPayloadLength() ? assembler : this;
    java.util.Arrays.fill(expected, 0);
    if (memory.capacity() < bytes) {
      final ByteBuffer buffer = BufferUtil.allocateDirectAligned(bytes, 64).order(ByteOrder.LITTLE_ENDIAN);
      memory = new UnsafeBuffer(buffer);
      memory.setMemory(0, bytes, (byte) 1);
    }
  }

  /** A message has arrived. */
  @Override
  public void onFragment(final DirectBuffer buffer, final int offset, final int length, final Header header) {
    final long first = buffer.getLong(offset);
    final int sender = (int) (first >>> SENDER_SHIFT);
    if (length == size && sender <= SENDERS_MAX) {
      final long wanted = (long) sender << SENDER_SHIFT | expected[sender]++;
      if (first == wanted && buffer.getLong(offset + size - Long.BYTES) == wanted) {
        checked++;
      }
    }
    handled++;
  }

  private void send(final int at, final long stamp) {
    memory.putLong(at, stamp);
    memory.putLong(at + size - Long.BYTES, stamp);
    long result;
    final boolean claims = size <= publication.maxPayloadLength();
    while ((result = claims ? publication.tryClaim(size, claim) : publication.offer(memory, at, size)) < 0) {
      if (result == Publication.CLOSED || result == Publication.MAX_POSITION_EXCEEDED || result == Publication.NOT_CONNECTED) {
        throw new IllegalStateException("offer: " + Publication.errorString(result));
      }
      // Pushed back: the driver must move the limit on.
      pass();
    }
    if (claims) {
      claim.putBytes(memory, at, size);
      claim.commit();
    }
  }

  /** Waits until that many messages have arrived. */
  private void receive(final long until, final int fragments) {
    while (handled < until) {
      if (subscription.poll(handler, fragments) == 0 || fragments > 1) {
        pass();
      }
    }
  }

  /** Once in a while, the driver and the client have something to do. */
  private void pass() {
    // Between hosts nothing goes or comes but by the driver.
    if (between || ++polls >= POLLS_PER_INVOCATION) {
      polls = 0;
      if (drives) {
        driver.sharedAgentInvoker().invoke();
      }
    }
  }

  private void latency(final long count) throws IOException {
    if (role == RECEIVER) {
      say("{\"ready\":true}");
    }
    final long begin = System.nanoTime();
    for (long turn = 0; turn < count; turn++) {
      final long stamp = 1L << SENDER_SHIFT | turn;
      if (role == RECEIVER) {
        receive(turn + 1, 1);
        send(0, stamp);
      } else {
        send(0, stamp);
        receive(turn + 1, 1);
      }
      // A log moves on for as long as the driver is asked to.
      if (drives && (between || (turn & 1023) == 0)) {
        driver.sharedAgentInvoker().invoke();
      }
    }
    final long end = System.nanoTime();
    linger();
    answer(begin, end, checked);
  }

  /** Between hosts what was sent goes, and is acknowledged, only while the driver is asked to. */
  private void linger() {
    final long until = System.nanoTime() + LINGERING_NS;
    while (between && System.nanoTime() < until) {
      invoke();
    }
  }

  private void give(final long count, final boolean fresh) throws IOException {
    final int end = fresh ? REGION_BYTES : size;
    int at = 0;
    final long begin = System.nanoTime();
    for (long turn = 0; turn < count; turn += MESSAGES_PER_CALL) {
      at = giveSome(turn, Math.min(count, turn + MESSAGES_PER_CALL), at, end);
    }
    if (between) {
      // The driver must be asked until all has come: the receiver says so.
      receive(1, 1);
    }
    answer(begin, System.nanoTime(), count);
  }

  /** Sends messages from one number up to another, from that place on. The place of the next. */
  private int giveSome(final long from, final long to, final int first, final int end) {
    int at = first;
    for (long turn = from; turn < to; turn++) {
      send(at, (long) role << SENDER_SHIFT | turn);
      at += size;
      if (at + size > end) {
        at = 0;
      }
    }
    return at;
  }

  private void take(final long count) throws IOException {
    say("{\"ready\":true}");
    final long begin = System.nanoTime();
    while (handled < count) {
      receive(Math.min(count, handled + MESSAGES_PER_CALL), FRAGMENTS_PER_POLL);
    }
    final long end = System.nanoTime();
    if (between) {
      send(0, 0);
      linger();
    }
    answer(begin, end, checked);
  }
}
